// copy_entries(): the winners of one open file into another.
#pragma once

#include <cstdint>

#include "cache/connection.h"

namespace hone::cache {

struct CopyOptions {
  bool binaries = true;
  bool tunings = true;
};

struct CopyCounts {
  std::int64_t added = 0;
  std::int64_t replaced = 0;         ///< better than what was there under their key
  std::int64_t kept = 0;             ///< what was there is better
  std::int64_t unchanged = 0;        ///< there already
  std::int64_t binaries = 0;         ///< copied
  std::int64_t damaged_winners = 0;  ///< left out: their digest does not hold
  std::int64_t damaged_tunings = 0;  ///< winners taken without their trials
  std::int64_t without_code = 0;     ///< winners taken whose code is damaged or was evicted

  std::int64_t intact_winners() const { return added + replaced + kept + unchanged; }
  bool changes_nothing() const { return added + replaced + binaries == 0; }
  CopyCounts& operator+=(const CopyCounts& other);
};

/// Puts every intact winner of `from` into `to` by the rule of is_better(), in the order of each_entry(). Call inside
/// a writing transaction of `to`. Throws StoreError.
CopyCounts copy_entries(Connection& from, Connection& to, const CopyOptions& options);

}  // namespace hone::cache
