// Rows of limits: what calls take at least on a device in a machine.
#pragma once

#include <cstdint>
#include <optional>

#include "cache/connection.h"
#include "cache/records.h"

namespace hone::cache {

/// After so many seconds a row is replaced instead of merged, and not read any more: machines are changed, and whatever
/// was measured wrong is forgotten.
inline constexpr std::int64_t kLimitsLifetimeS = 30 * 24 * 60 * 60;

/// Returns both measurements as one: the least of each time, since whatever comes between makes it longer, and the
/// highest bandwidth. If `old` is past its lifetime or from the future, it says nothing.
LimitsRecord merged(const LimitsRecord& old, const LimitsRecord& next);

/// The row with the key of `key`; nullopt if there is none, or if its digest does not hold. Throws StoreError.
std::optional<LimitsRecord> find_limits(Connection& connection, const LimitsRecord& key);

/// Writes limits, merged with those that are there, and returns what was written. Call inside a writing transaction.
/// Throws StoreError.
LimitsRecord put_limits(Connection& connection, const LimitsRecord& limits);

}  // namespace hone::cache
