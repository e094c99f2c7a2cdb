// merge(): the winners of other cache files into this one.
#pragma once

#include <filesystem>
#include <span>

#include "cache/maintenance/copy.h"

namespace hone::cache {

struct MergeOptions {
  bool binaries = true;  ///< false: winners alone; their code is compiled again where it is needed
  bool dry_run = false;  ///< count, and change nothing
};

/// Merges the files at `sources` into the one at `destination`, in one transaction: all of it happens or nothing. For
/// one key the winner that is_better() stays, so neither the order of the sources nor who is merged into whom matters,
/// and merging once more changes nothing, not one byte. A destination that does not exist is made, and then its bytes
/// do not depend on the order either.
///
/// Throws StoreError, naming the file that cannot be used; a source that does not exist is one (unopenable),
/// and so is one that has damaged winners alone (corrupt).
CopyCounts merge(const std::filesystem::path& destination, std::span<const std::filesystem::path> sources,
                 const MergeOptions& options);

}  // namespace hone::cache
