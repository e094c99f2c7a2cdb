// The numbers on which the host and the kernels of the canonical tree (kernel_templates/canonical_*.cuh) agree, and
// what its folds cost in the model.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include <hone/kernel_family.h>

#include "runtime/families/counts.h"

namespace hone {

inline constexpr std::int64_t kChunkBytes = 2048, kLaneChunkBytes = kChunkBytes / 32;
inline constexpr std::int64_t kMostValues = 32;      ///< of a lane, after it has folded its packs
inline constexpr std::int64_t kMostSpanRounds = 32;  ///< spans of a block whose values it keeps

/// Partials that a block of so many threads combines: at most 16384, which takes it about 1 µs.
inline std::int64_t most_partials(std::int64_t block_threads) {
  return std::min<std::int64_t>(16384, block_threads * kMostSpanRounds * 4);
}

/// True if a lane has too many values after folding its packs of `chunks` chunks.
inline bool has_too_many_values(const Problem& problem, std::int64_t chunks, std::int64_t vector_bytes) {
  return chunks * vector_bytes > kMostValues * element_bytes(problem);
}

/// The memory latencies in which a warp folds `chunks` chunks, with none of its loads in flight.
inline double fold_latencies(std::int64_t chunks, std::int64_t element_bytes) {
  return 1.6 * static_cast<double>(chunks) / static_cast<double>(element_bytes);
}

/// Adds these to the rounds of a grid: fitted to ten sums of 2^20 to 2^26 f16, bf16, f32 and f64 in graphs, 43 to 502
/// candidates each: what the model puts first is at most 1.7 % slower than the best of them, and was 0.4 to 32 % slower
/// without folds. Of sums of rows, 4 x 2^24 f16 and 1000 x 20001 f32 would be 26 and 18 % slower without, and are 3 and
/// 0 % slower (H200, CUDA 13.0, 2026-11-30).
inline void add_folds(WorkShape& shape, std::int64_t chunks, std::int64_t element_bytes) {
  shape.lone_round_latencies = 1 + fold_latencies(chunks, element_bytes);
  shape.round_latencies = 1.5 * shape.lone_round_latencies;
}

/// How the tree of an array is divided: a warp takes 2^levels times what it has in flight, in a row; a span is what the
/// warps of a block take together. Columns may have spans of less than a chunk, whose levels are negative.
struct Spans {
  int levels = 0;
  std::int64_t count = 1;

  /// The shortest spans of which there are at most `most`. The last round of a grid is the shorter, the shorter they
  /// are. `tiles`: what a block has in flight at once, at least 1.
  static Spans of(std::int64_t tiles, std::int64_t most) {
    const auto levels = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(divide_up(tiles, most) - 1)));
    return {.levels = levels, .count = ((tiles - 1) >> levels) + 1};
  }
};

}  // namespace hone
