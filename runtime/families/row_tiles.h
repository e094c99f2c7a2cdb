// The numbers and limits of row_tiles.cuh and row_words.cuh, which several families share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/families/counts.h"

namespace hone {

/// The elements of a row that a thread of a tile has in registers, at most.
inline constexpr std::int64_t kMostElementsEach = 24;

/// The same where lanes take turns at words (row_words.cuh).
inline constexpr std::int64_t kMostElementsInWords = 32;

/// The elements of a row that each of its threads has, at least. Winners are verified on rows that are shorter, too.
inline std::int64_t least_elements_each(const Problem& problem, std::int64_t threads, std::int64_t shorter = 1) {
  return std::max<std::int64_t>(0, first_of(problem, 1) - shorter) / threads;
}
/// And at most.
inline std::int64_t most_elements_each(const Problem& problem, std::int64_t threads) {
  return at_least_one(divide_up(last_of(problem, 1), threads));
}

/// Up to so many, threads with rows to themselves have code for each number of columns.
inline constexpr std::int64_t kMostUnrolledColumns = 12;

/// The memory latencies of a round of a block: it loads the next tile when it has computed this one. Softmax of 1000003
/// rows of 7 f16 takes 11.2 µs with 70 KiB in flight on an SM, and 14.1 to 18.1 with 28 (H100, CUDA 13.0, 2026-11-27).
inline constexpr double kTileRoundLatencies = 2;

}  // namespace hone
