// prune(): takes out of a cache file what is no longer worth its place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "cache/maintenance/eviction.h"
#include "cache/records.h"

namespace hone::cache {

struct PruneRules {
  /// Returns true if a winner goes, with its trials, and its binary where no other has the same.
  std::function<bool(const StoredWinner&)> removes = [](const StoredWinner&) { return false; };

  /// So many bytes may be left afterwards, see evict(); negative: no matter how many.
  std::int64_t max_bytes = -1;

  /// Sets the file's limit from now on, see keep_to_size(); 0: no limit of its own. Not changed where nullopt.
  std::optional<std::int64_t> limit_bytes = {};

  bool dry_run = false;  ///< prune a copy, and change nothing
};

struct PruneCounts {
  std::int64_t winners_before = 0;
  std::int64_t winners = 0;     ///< removed by the rule
  EvictionCounts evicted = {};  ///< removed for the size
  std::int64_t bytes_before = 0;  ///< size of the file
  std::int64_t bytes_after = 0;
};

/// In one transaction: all of it happens or nothing. Then the file is made as small as it can be. A file that does not
/// exist is left so. Throws StoreError.
PruneCounts prune(const std::filesystem::path& path, const PruneRules& rules);

}  // namespace hone::cache
