// The place of the cache file: what may be opened there, and how it is made.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace hone::cache {

/// Whether there is a file at `path`. Throws StoreError(unopenable) when there is something that is no regular file
/// (asked by name only, so a FIFO cannot block), or when the folder cannot be searched, and not_a_database when the
/// file is one that SQLite would take for an empty one.
bool file_exists(const std::filesystem::path& path);

/// Makes the missing folders above an absolute `path`, with mode 0700. Throws StoreError(unopenable) when that fails,
/// or when no file can be made there.
void prepare_folder(const std::filesystem::path& path);

/// Puts a file with this content, mode 0600, in the place of whatever file is at an absolute `path`: at once, and only
/// when all of it is on the disk. Throws StoreError (full, unopenable).
void replace_file(const std::filesystem::path& path, std::span<const std::byte> content);

/// Takes all rights from group and others. The file must not hold anything yet.
void make_private(const std::filesystem::path& path) noexcept;

}  // namespace hone::cache
