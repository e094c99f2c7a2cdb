// The limits of row_tiles.cuh, which several families share.
#pragma once

#include <cstdint>

namespace hone {

/// The elements of a row that a thread of a tile has in registers, at most.
inline constexpr std::int64_t kMostElementsEach = 24;

/// Up to so many, threads with rows to themselves have code for each number of columns.
inline constexpr std::int64_t kMostUnrolledColumns = 12;

/// The memory latencies of a round of a block: it loads the next tile when it has computed this one. Softmax of 1000003
/// rows of 7 f16 takes 11.2 µs with 70 KiB in flight on an SM, and 14.1 to 18.1 with 28 (H100, CUDA 13.0, 2026-11-27).
inline constexpr double kTileRoundLatencies = 2;

}  // namespace hone
