// snapshot(): a file to ship: read-only, compact, and the same bytes for the same winners.
#pragma once

#include <cstdint>
#include <filesystem>

#include "cache/maintenance/copy.h"

namespace hone::cache {

/// Writes the intact winners of the cache at `source` to a new file at `target`, with mode 0444 and nothing else in it:
/// no claims, no usage, no free pages. It is complete when it appears under its name, replaces an earlier snapshot
/// there (a cache that nobody may write to), and is read without a right to write to it or to its folder. Two caches
/// with the same winners give the same bytes, whatever happened to them.
///
/// Throws StoreError: for a source that does not exist, cannot be read or has damaged winners alone, and for a target
/// that is something else than a snapshot, or the source itself.
CopyCounts snapshot(const std::filesystem::path& source, const std::filesystem::path& target,
                    const CopyOptions& options);

}  // namespace hone::cache
