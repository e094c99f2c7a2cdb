// Entries out of an open cache file and into it.
#pragma once

#include <cstdint>
#include <functional>

#include "cache/connection.h"
#include "cache/maintenance/entry.h"

namespace hone::cache {

/// PassCounts says what a pass over a file came across.
struct PassCounts {
  std::int64_t winners = 0;           ///< intact ones, which were visited
  std::int64_t damaged_winners = 0;   ///< the digest of the row or of its device does not hold: not visited
  std::int64_t damaged_binaries = 0;  ///< damaged or evicted, where code was asked for
  std::int64_t damaged_tunings = 0;   ///< the winner was visited, without its tuning
};

/// Visits the intact winners of a file by time of creation, then by digest: an order that does not depend on how the
/// rows came into the file. Holds one entry in memory at a time; `visit` must not change this file.
PassCounts each_entry(Connection& connection, const std::function<void(Entry&&)>& visit);

enum class PutOutcome {
  added,      ///< no winner had this key
  replaced,   ///< one had, and the new one is better, or the old one damaged
  kept,       ///< one had, and it is better
  unchanged,  ///< this very winner was there
};

/// Writes an entry by the rule of is_better(), without its code. Changes nothing where it is kept or unchanged, except
/// that of two descriptions of its device the same one stays, whatever the order.
PutOutcome put_entry(Connection& connection, const Entry& entry);

/// Copies a binary from one open file to the other unless it is there. False when the source has none that is intact.
/// `copied` counts what was written.
bool copy_binary(Connection& from, Connection& to, std::string_view digest, std::int64_t& copied);

/// Removes what no winner refers to any more: binaries, devices, toolchains.
void remove_orphans(Connection& connection);

}  // namespace hone::cache
