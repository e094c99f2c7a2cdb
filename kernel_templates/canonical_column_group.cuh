// ColumnGroup: how the threads of a block fold a chunk of the columns of a tile, whose elements they have in batches.
//
// A chunk of F-fold rows has C / F of them, F a power of two. Thread y of a column takes the rows y,
// y + kThreadsPerOutput, … of the chunk, kUnroll of them at once: a batch. Batch b has the rows whose numbers among the
// thread's own are equal to b, with its bits reversed, modulo the number of batches: each is a node of the tree, and
// they come in such an order that a binary counter makes the tree of them. The strides of a thread's rows are folded
// first, in the thread, then those between threads, in shared memory, then those between the folds of a row.
#pragma once

#include "canonical_column_fold.cuh"
#include "canonical_group.cuh"

namespace hone {

/// It has what a thread needs to know of the chunk, and of the tile, once the elements are there. A thread takes the
/// chunk in at most 2^kBatchLevels batches.
template <class Tiling, unsigned kBatchLevels>
class ColumnGroup {
 public:
  using Op = typename Tiling::Op;
  using In = typename Tiling::In;
  using Offset = typename Tiling::Offset;
  using Tile = ColumnTile<Tiling>;
  using ElementPack = typename Tiling::ElementPack;
  using Prepared = decltype(Op::prepared(ElementPack()));
  using Element = decltype(Prepared()[0]);
  using Threads = ColumnThreads<Tiling>;
  static constexpr unsigned kElements = kChunkElements<In>;
  static constexpr unsigned kPack = Tiling::kPackElements, kThreads = Tiling::kThreadsPerOutput;
  static constexpr unsigned kUnroll = Tiling::kUnroll;
  static constexpr unsigned kStates = kPack;
  static_assert(!Tiling::kShiftedLoads && kThreads * kUnroll <= kElements);

  /// The rows `row`, row + (kThreads << levels_), … of the chunk, of which the first `count` are there.
  struct Batch {
    ElementPack packs[kUnroll];
    unsigned row, count;
  };

  /// Calls act(output, State) for each output, by one thread: the threads of a column have the same States.
  template <class State, class Act>
  __device__ void for_outputs(const State (&states)[kPack], const Act& act) const {
    const unsigned outputs = Tiling::kFolds ? inner_ : width_;
    const auto give = [&](unsigned e, State state) {
      const int column = column_ + static_cast<int>(e);
      if (column >= 0 && column < static_cast<int>(outputs)) act(static_cast<unsigned>(column), state);
    };
    // Where all threads wait for these, combining States is code that they need once. Elsewhere the threads of other
    // columns go on: 8192 × 8192 f16 took logsumexp 54.6 µs, and 59.4 this way (H200, CUDA 13.0, 2026-11-30).
    if constexpr (kBatchLevels == 0 && Threads::kHaveOneOutput) {
      unsigned mine = kPack;
      State state = states[0];
      unrolled<kPack>([&](unsigned e) {
        if (row_ != Threads::row_of_output(e)) return;
        mine = e;
        state = states[e];
      });
      if (mine < kPack) give(mine, state);
    } else {
      unrolled<kPack>([&](unsigned e) {
        if (row_ == Threads::row_of_output(e)) give(e, states[e]);
      });
    }
  }

  // These are what canonical_group.cuh asks of a group.
  __device__ unsigned count(unsigned) const { return count_; }
  template <class Monoid, class T>
  __device__ void combine_threads(T (&values)[kPack]) const {
    T* const of_output = states_of_outputs<T>();
    fold_threads<Monoid, 1>(values, 0, [&](unsigned output, T result) { of_output[output] = result; });
    __syncthreads();
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPack); ++e)
      values[e] = of_output[is_column(column_ + e) ? output_of(column_ + e) : 0];
  }
  __device__ bool any(bool is) const { return __syncthreads_or(is); }

  /// The nodes of batches whose right neighbours are missing yet.
  template <class T>
  using Nodes = T[kBatchLevels + 1][kPack];

  /// Folds leaf(element, is_there, e, number), of each of a thread's columns, over batch number b, and adds it to the
  /// tree of batches; after the last of them `values` is the tree. Batches without gaps have code of their own, since
  /// asking for each element whether it is there takes as long as adding it.
  template <class Monoid, class T, class Leaf>
  __device__ void fold_batch(Nodes<T>& nodes, T (&values)[kPack], const Batch& batch, unsigned b,
                             const Leaf& leaf) const {
    if (is_idle()) return;
    const bool is_whole = batch.count >= kUnroll && (!Tiling::kFolds || count_ == kElements);
    if (is_whole) fold_packs<Monoid, true>(values, batch, leaf);
    else fold_packs<Monoid, false>(values, batch, leaf);
    push<Monoid>(nodes, values, b);
  }

  /// Returns what folds the values of all threads of each column of the tile, even after the chunk has gone to another.
  template <class T, unsigned kBuffers>
  __device__ ColumnFold<Tiling, T, kBuffers> fold_of_tile() const {
    return {width_, folds_, inner_, row_, column_};
  }
  template <class Monoid, unsigned kBuffers, class T, class Act>
  __device__ void fold_threads(const T (&values)[kPack], unsigned buffer, const Act& act) const {
    fold_of_tile<T, kBuffers>().template fold<Monoid>(values, buffer, act);
  }

  __device__ unsigned row() const { return row_; }
  /// The first of a thread's columns. It may lie before the tile, and so may some of those behind it.
  __device__ int column() const { return column_; }
  /// True if none of them is in the tile.
  __device__ bool is_idle() const { return column_ >= static_cast<int>(width_); }

 protected:
  __device__ ColumnGroup(const Tile& tile, const In* in)
      : width_(tile.width), folds_(tile.folds), inner_(tile.inner), row_(Threads::row()) {
    column_ = static_cast<int>(threadIdx.x % Tiling::kLanes * kPack);
    if constexpr (Tiling::kPhaseMatched) {
      const In* const row = in + (tile.first + static_cast<Offset>(row_) * tile.pitch);
      const unsigned shift = elements_before_alignment<sizeof(ElementPack)>(row);
      if (shift != 0) column_ += static_cast<int>(shift) - static_cast<int>(kPack);
    }
  }

  __device__ bool is_column(int column) const { return column >= 0 && column < static_cast<int>(width_); }
  /// The output that a column of the tile belongs to.
  __device__ unsigned output_of(int column) const {
    return Tiling::kFolds ? static_cast<unsigned>(column) % inner_ : static_cast<unsigned>(column);
  }

  /// Folds a batch; kIsWhole: all of its elements are there.
  template <class Monoid, bool kIsWhole, class T, class Leaf>
  __device__ void fold_packs(T (&values)[kPack], const Batch& batch, const Leaf& leaf) const {
    const Array<Prepared, kUnroll> packs([&](unsigned u) { return Op::prepared(batch.packs[u]); });
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e) {
      const unsigned fold = Tiling::kFolds ? fold_of(e) : 0;
      values[e] = fold_leaves<Monoid, kUnroll>([&](unsigned u) {
        const unsigned number = (batch.row + (u * kThreads << levels_)) * folds_ + fold;
        const bool is_there = Tiling::kFolds ? u < batch.count && number < count_ : u < batch.count;
        return leaf(packs.values[u][e], kIsWhole || is_there, e, number);
      });
    }
  }

  template <class Monoid, class T>
  __device__ void push(Nodes<T>& nodes, T (&values)[kPack], unsigned before) const {
#pragma unroll
    for (unsigned level = 0; level < kBatchLevels; ++level) {
      // The batch may be the last of a node of 2^level batches, which is a left or a right one. Two levels are
      // predicated, since a branch for each would move all nodes to other registers.
      const unsigned digits = before & ((2u << level) - 1), left = (1u << level) - 1;
      if (level > 1 && digits < left) break;
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) {
        if (digits == left) nodes[level][e] = values[e];
        if (digits == 2 * left + 1) values[e] = Monoid::combine(nodes[level][e], values[e]);
      }
    }
  }

  unsigned width_, folds_, inner_;  ///< of the tile
  unsigned row_;
  int column_;
  Offset first_ = 0;     ///< row of the chunk
  unsigned count_ = 0;   ///< elements of the chunk
  unsigned levels_ = 0;  ///< it is taken in 2^levels_ batches

 private:
  template <class T>
  static __device__ T* states_of_outputs() {
    __shared__ T of_output[Tiling::kTileColumns];
    return of_output;
  }
  __device__ unsigned fold_of(unsigned e) const {
    const int column = column_ + static_cast<int>(e);
    return column < 0 ? 0 : static_cast<unsigned>(column) / inner_;
  }
};

}  // namespace hone
