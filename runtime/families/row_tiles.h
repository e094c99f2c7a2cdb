// The limits of row_tiles.cuh, which several families share.
#pragma once

#include <cstdint>

namespace hone {

/// The elements of a row that a thread of a tile has in registers, at most.
inline constexpr std::int64_t kMostElementsEach = 24;

/// Up to so many, threads with rows to themselves have code for each number of columns.
inline constexpr std::int64_t kMostUnrolledColumns = 12;

/// Runs of rows that are loaded to shared memory: another one while groups compute. A thread that has rows to itself
/// computes them so fast that more blocks, each with less shared memory, do better.
inline std::int64_t tile_in_areas(std::int64_t threads_per_row) { return threads_per_row == 1 ? 1 : 2; }

}  // namespace hone
