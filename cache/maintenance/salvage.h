// salvage(): the rows of a damaged file, wherever they stand in it.
#pragma once

#include <cstdint>

#include "cache/connection.h"
#include "cache/maintenance/raw_file.h"

namespace hone::cache {

struct SalvageCounts {
  std::int64_t pages = 0;
  std::int64_t unreadable_pages = 0;
  std::int64_t rows = 0;  ///< that have the columns of one of our tables; nothing is said of their digests
};

/// Collects what could be a row of ours from the pages of `damaged` in `scratch`, an empty database. It gets our
/// tables, but without their constraints, so that rows that contradict each other find room: the digests decide. Call
/// inside a transaction of `scratch`. Throws StoreError.
SalvageCounts salvage(const RawFile& damaged, Connection& scratch);

}  // namespace hone::cache
