// Entry: a winner with all that belongs to it, free of the ids of one file; and which of two is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/records.h"

namespace hone::cache {

/// An Entry is what export, import, merge, snapshot and repair carry from file to file. The code of the binary travels
/// apart: many winners may share one, and a winner may have to do without.
struct Entry {
  KeyRecord key;
  WinnerRecord winner;
  std::int64_t created_at = 0;  ///< seconds since 1970, UTC
  std::string binary;           ///< digest of its binary
  std::optional<TuningRecord> tuning;
};

/// 32 hexadecimal digits over every field, trials included. Of the device only the key: the rest of it is for people,
/// and kept once for all winners of the device.
std::string entry_digest(const Entry& entry);

/// Samples behind the winner's time; 0 where no trial says so.
int winner_samples(const Entry& entry);

/// Orders versions as people do: runs of digits by their value, all else by bytes. "9.2" < "13.0", "570" < "570.1".
/// Negative, 0 or positive.
int compare_versions(std::string_view a, std::string_view b);

/// True if `a` is kept where both are to be had for one key: a tuned one before an untuned one, then the newer driver,
/// more samples, the younger, and last the larger digest. A strict total order, so it does not matter in which order
/// files are merged.
bool is_better(const Entry& a, const Entry& b);

}  // namespace hone::cache
