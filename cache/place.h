// The place of the cache file: what may be opened there, and how it is made.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hone::cache {

/// Where a path leads to, without symbolic links, and which file is there.
struct Place {
  std::filesystem::path path;
  bool exists = false;
  bool is_read_only = false;  ///< no bit of the file's mode lets anyone write to it, as of a snapshot
  ::dev_t device = 0;
  ::ino_t inode = 0;
  std::string distrust;  ///< why somebody else may have written the file, or may write one there; "": nobody else can
  std::string_view advice = {};  ///< what to do about `distrust`, where it is not the usual
};

/// Follows an absolute `path` one folder at a time. There is no file when a folder on the way is missing or is none.
///
/// A file is trusted when it, every folder above it and every symbolic link on the way belong to the effective user or
/// to root, and nobody else may write to the file or to one of the folders. Others may write to a sticky folder such as
/// /tmp: there nobody takes away or replaces what is not theirs, and what they put beside the file is refused when it
/// would be used (see GuardedVfs). A group may write that has nobody but the owner in it (see is_private_group). The
/// file has one name only: a hard link may be somebody else's doing.
///
/// Throws StoreError: unopenable when there is something that is no regular file (asked by name only, so a FIFO cannot
/// block) or when a folder cannot be searched; not_a_database when the file is one that SQLite would take for an empty
/// one.
Place find_place(const std::filesystem::path& path);

/// True if find_place() finds a file there; `path` may be relative.
bool file_exists(const std::filesystem::path& path);

/// Throws StoreError(untrusted) with the reason for it.
void require_trust(const Place& place);

/// Throws StoreError(read_only) where nobody may write to the file, not even root, whom the system would let.
void require_writer(const Place& place);

/// For after the file was opened: throws StoreError(untrusted) when at `before.path` there is not the file any more
/// that was there, or, where there was none and `before` is trusted, not one that can be.
void require_same(const Place& before);

/// True if a regular file is there, or nothing; a symbolic link is neither.
bool is_file_or_nothing(const std::filesystem::path& path) noexcept;

/// Why a file beside the cache, its journal say, cannot be used: it is no regular file, or somebody else may have made
/// it. "": it can, or there is none. Sets `exists`.
std::string companion_distrust(const std::filesystem::path& path, bool& exists);

/// Throws StoreError(unopenable) when beside a file that is not trusted there is a journal with an unfinished write, or
/// something else than a file in the place of its journal or write-ahead log.
void require_finished(const std::filesystem::path& path);

/// Checks that whatever is written at `path` would be trusted, and that locks keep other writers out. Throws StoreError
/// as find_place(), and StoreFault::untrusted, unlocked or read_only; makes nothing.
void require_writable_place(const std::filesystem::path& path);

/// Makes the missing folders above an absolute `path`, with mode 0700. Throws StoreError(unopenable) when that fails,
/// or when no file can be made there.
void prepare_folder(const std::filesystem::path& path);

/// Puts a file with this content, mode 0600, in the place of whatever file is at an absolute `path`: at once, and only
/// when all of it is on the disk. Throws StoreError (full, unopenable).
void replace_file(const std::filesystem::path& path, std::span<const std::byte> content);

/// Takes all rights from group and others. The file must not hold anything yet.
void make_private(const std::filesystem::path& path) noexcept;

}  // namespace hone::cache
