// ColumnFold: the tree of the threads of each column of a tile, in shared memory, and of the folds of each output.
// ColumnTree: the tree of the chunks of each output.
#pragma once

#include "canonical_tree.cuh"
#include "column_tile.cuh"

namespace hone {

/// Folds what the threads of a column have. Thread `row` has the columns from `column` on, which may begin before the
/// tile. kBuffers calls in a row need no barrier between them.
template <class Tiling, class T, unsigned kBuffers>
struct ColumnFold {
  static constexpr unsigned kPack = Tiling::kPackElements, kThreads = Tiling::kThreadsPerOutput;

  unsigned width, folds, inner;  ///< of the tile
  unsigned row;
  int column;

  /// Calls act(output, result), by one thread each. Before a buffer is used again, there is a barrier: that of the call
  /// with the other one, say.
  template <class Monoid, class Act>
  __device__ void fold(const T (&values)[kPack], unsigned buffer, const Act& act) const {
    T(&states)[kThreads][Tiling::kTileColumns] = buffers()[buffer];
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPack); ++e)
      if (column + e >= 0 && column + e < static_cast<int>(width)) states[row][column + e] = values[e];
    __syncthreads();
    const auto of_column = [&](unsigned c) {
      return fold_leaves<Monoid, kThreads>([&](unsigned y) { return states[y][c]; });
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
  /// The same ones for every fold of T.
  static __device__ auto buffers() -> T (*)[kThreads][Tiling::kTileColumns] {
    __shared__ T of_thread[kBuffers][kThreads][Tiling::kTileColumns];
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
