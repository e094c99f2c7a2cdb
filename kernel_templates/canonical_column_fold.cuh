// ColumnFold: the tree of the threads of each column of a tile, in shared memory, and of the folds of each output.
// ColumnTree: the tree of the chunks of each output.
#pragma once

#include "canonical_tree.cuh"
#include "column_tile.cuh"

namespace hone {

/// Which rows the threads of a column take. If all wait for the fold of each chunk, the rows of a warp are furthest
/// apart: their strides are folded first, by shuffles, if its threads have the same columns. Sums, of which the next
/// batch is in flight meanwhile, are up to 3 % faster by neighbouring rows (H200, CUDA 13.0, 2026-11-30).
template <class Tiling>
struct ColumnThreads {
  static constexpr unsigned kLanes = Tiling::kLanes, kPack = Tiling::kPackElements;
  static constexpr unsigned kThreads = Tiling::kThreadsPerOutput;
  /// The threads of a column in a warp; their rows are kApart apart.
  static constexpr unsigned kOfWarp =
      kIsByChunk<typename Tiling::Op> && kLanes < kWarpThreads ? kWarpThreads / kLanes : 1;
  static constexpr unsigned kApart = kThreads / kOfWarp;
  /// Threads whose rows are a multiple of this apart have the same columns.
  static constexpr unsigned kAlike = Tiling::kPhaseMatched ? kPack : 1;
  static constexpr bool kShuffles = kOfWarp > 1 && kApart % kAlike == 0;
  static constexpr unsigned kLeft = kShuffles ? kApart : kThreads;    ///< values of a column after the shuffles
  static constexpr bool kHaveOneOutput = kPack * kAlike <= kThreads;  ///< at most, by row_of_output()

  /// The first row of the current thread.
  static __device__ unsigned row() {
    const unsigned number = threadIdx.x / kLanes;
    return number / kOfWarp + number % kOfWarp * kApart;
  }
  /// The first row of the threads that write what becomes of column e of their packs. They have the columns of those
  /// whose first row is 0.
  static __device__ constexpr unsigned row_of_output(unsigned e) { return e * kAlike % kThreads; }
};

/// Folds what the threads of a column have. Thread `row` has the columns from `column` on, which may begin before the
/// tile. kBuffers calls in a row need no barrier between them.
template <class Tiling, class T, unsigned kBuffers>
struct ColumnFold {
  using Threads = ColumnThreads<Tiling>;
  static constexpr unsigned kPack = Tiling::kPackElements, kLeft = Threads::kLeft;

  unsigned width, folds, inner;  ///< of the tile
  unsigned row;
  int column;

  /// Calls act(output, result), by one thread each. Before a buffer is used again, there is a barrier: that of the call
  /// with the other one, say.
  template <class Monoid, class Act>
  __device__ void fold(const T (&values)[kPack], unsigned buffer, const Act& act) const {
    T(&states)[kLeft][Tiling::kTileColumns] = buffers()[buffer];
    const auto put = [&](int of, T value) {
      if (of >= 0 && of < static_cast<int>(width)) states[row % kLeft][of] = value;
    };
    if constexpr (Threads::kShuffles) fold_lanes<Monoid>(values, put);
    else unrolled<kPack>([&](unsigned e) { put(column + static_cast<int>(e), values[e]); });
    __syncthreads();
    const auto of_column = [&](unsigned c) {
      return fold_leaves<Monoid, kLeft>([&](unsigned y) { return states[y][c]; });
    };
    if constexpr (!Tiling::kFolds) {
      Tiling::for_columns(width, [&](unsigned c) { act(c, of_column(c)); });
    } else {
      T* const of_fold = states[0];
      Tiling::for_columns(width, [&](unsigned c) { of_fold[c] = of_column(c); });
      for (unsigned left = folds / 2; left > 0; left /= 2) {
        __syncthreads();
        Tiling::for_columns(left * inner, [&](unsigned c) {
          of_fold[c] = Monoid::combine(of_fold[c], of_fold[c + left * inner]);
        });
      }
      Tiling::for_columns(inner, [&](unsigned c) { act(c, of_fold[c]); });
    }
  }

 private:
  /// Calls put(column, value) for what the threads of the warp have of each of their columns, by one thread each.
  template <class Monoid, class Put>
  __device__ void fold_lanes(const T (&values)[kPack], const Put& put) const {
    T some[kPack];
    unrolled<kPack>([&](unsigned e) { some[e] = values[e]; });
    scatter_lanes<Monoid, 1, kPack, kWarpThreads / 2, Threads::kLanes>(some);
    // Each exchange leaves a lane half of its columns; once it has one, both have the same.
    unsigned count = kPack, first = 0;
    bool is_first = true;
#pragma unroll
    for (unsigned mask = kWarpThreads / 2; mask >= Threads::kLanes; mask /= 2) {
      const bool is_upper = (threadIdx.x & mask) != 0;
      if (count == 1) is_first = is_first && !is_upper;
      else if (count /= 2; is_upper) first += count;
    }
    if (!is_first) return;
    unrolled<kPack>([&](unsigned e) {
      if (e < count) put(column + static_cast<int>(first + e), some[e]);
    });
  }

  /// The same ones for every fold of T.
  static __device__ auto buffers() -> T (*)[kLeft][Tiling::kTileColumns] {
    __shared__ T of_thread[kBuffers][kLeft][Tiling::kTileColumns];
    return of_thread;
  }
};

/// A binary counter for each of kOutputs outputs, of at most 2^kLevels chunks. An output is always pushed by the same
/// thread.
template <class Op, unsigned kLevels, unsigned kOutputs>
struct ColumnTree {
  using State = typename Op::State;

  /// Adds the chunk that has `chunks` before it; true behind the last one, when `state` is the tree.
  static __device__ bool push(unsigned output, State& state, unsigned long long chunks, bool is_last) {
    if constexpr (kLevels > 0) {
      __shared__ State nodes[kLevels][kOutputs];
      unsigned level = 0;
      for (; chunks != 0; chunks >>= 1, ++level) {
        if ((chunks & 1) != 0) state = Op::combine(nodes[level][output], state);
        else if (!is_last) break;  // behind the last chunk, right nodes that do not exist are left out
      }
      if (!is_last) nodes[level][output] = state;
    }
    return is_last;
  }
};

}  // namespace hone
