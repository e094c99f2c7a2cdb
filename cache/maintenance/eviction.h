// evict(): how a cache file keeps to its size.
#pragma once

#include <cstdint>

#include "cache/connection.h"

namespace hone::cache {

struct EvictionCounts {
  std::int64_t binaries = 0;
  std::int64_t tunings = 0;
  std::int64_t winners = 0;
};

/// Bytes of the pages that hold anything; free pages, which later rows use again, do not count.
std::int64_t used_bytes(Connection& connection);

/// Removes rows until used_bytes() is at most `goal_bytes`: first trials (which explain, and serve no call), then
/// binaries (a winner whose code is gone costs every process a compile), then winners, untuned ones first. Each in the
/// order of last use, the longest unused first. Spares the winner `spared_winner`, 0 for none, with its binary and
/// trials. Call inside a writing transaction. Throws StoreError.
EvictionCounts evict(Connection& connection, std::int64_t goal_bytes, std::int64_t spared_winner);

/// A publication does this: nothing while used_bytes() is at most the file's own limit (kMaxBytesProperty) or else
/// `max_bytes`, 0 for no limit; beyond that it evicts down to nine tenths of it, so that not every publication has to.
void keep_to_size(Connection& connection, std::int64_t max_bytes, std::int64_t published_winner);

}  // namespace hone::cache
