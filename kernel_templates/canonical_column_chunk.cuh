// ColumnChunk: a chunk of the columns of a tile, shared by the threads of a block.
//
// The strides of a thread's rows are folded first, in the thread, then those between threads, in shared memory, then
// those between the folds of a row. Batches come in such an order that a binary counter makes the tree of them.
// Operations with kByChunk fold several times: they load a chunk again for each, unless it is a single batch.
#pragma once

#include "canonical_column_batches.cuh"
#include "canonical_column_fold.cuh"

namespace hone {

template <class Tiling, unsigned kBatchLevels, bool kHolds = kBatchLevels == 0>
class ColumnChunk : public ColumnBatches<Tiling, kBatchLevels, kHolds> {
 public:
  using Batches = ColumnBatches<Tiling, kBatchLevels, kHolds>;
  using Op = typename Tiling::Op;
  using typename Batches::In, typename Batches::Offset, typename Batches::Tile, typename Batches::ElementPack;
  using typename Batches::Batch;
  using Batches::kPack, Batches::kThreads, Batches::kUnroll;
  using Prepared = decltype(Op::prepared(ElementPack()));
  using Element = decltype(Prepared()[0]);
  static constexpr unsigned kStates = kPack;
  static constexpr bool kIsHeld = kHolds, kKnowsFirst = true;

  using Batches::Batches;

  /// Calls act(output, e) for the outputs of which the thread has the State e of a group.
  template <class Act>
  __device__ void for_outputs(unsigned outputs, const Act& act) const {
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPack); ++e)
      if (row_ == 0 && column_ + e >= 0 && column_ + e < static_cast<int>(outputs))
        act(static_cast<unsigned>(column_ + e), static_cast<unsigned>(e));
  }

  // A group of canonical_group.cuh.
  __device__ unsigned count(unsigned) const { return count_; }
  __device__ In first(unsigned e) const {
    const int column = column_ + static_cast<int>(e);
    if (count_ == 0 || column < 0 || column >= static_cast<int>(tile_.width)) return In{};
    return in_[tile_.first + first_ * tile_.pitch + output_of(column)];
  }
  template <class Monoid, class T, class Leaf>
  __device__ void fold(T (&results)[kPack], const Leaf& leaf) const {
    Nodes<T> nodes;
    for_batches([&](unsigned b, const Batch& batch) {
      fold_batch<Monoid>(nodes, results, batch, b, [&](Element x, bool is_there, unsigned e, unsigned number) {
        return leaf(Op::present(x, is_there), e, number);
      });
    });
    combine_threads<Monoid>(results);
  }
  template <class Monoid, class T>
  __device__ void combine_threads(T (&values)[kPack]) const {
    T* const of_output = states_of_outputs<T>();
    fold_threads<Monoid, 1>(values, 0, [&](unsigned output, T result) { of_output[output] = result; });
    __syncthreads();
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPack); ++e) {
      const bool is_column = column_ + e >= 0 && column_ + e < static_cast<int>(tile_.width);
      values[e] = of_output[is_column ? output_of(column_ + e) : 0];
    }
  }
  __device__ bool any(bool is) const { return __syncthreads_or(is); }

  /// The fold, of each of a thread's columns, of leaf(element, is_there, e, number) over the thread's rows.
  template <class Monoid, class T, class Leaf>
  __device__ void fold_rows(T (&values)[kPack], const Leaf& leaf) const {
    Nodes<T> nodes;
    for_batches([&](unsigned b, const Batch& batch) {
      fold_packs<Monoid, false>(values, batch, leaf);
      push<Monoid>(nodes, values, b);
    });
  }

  /// The nodes of batches whose right neighbours are missing yet.
  template <class T>
  using Nodes = T[kBatchLevels + 1][kPack];

  /// Does for batch number b what fold_rows() does for all of them. Batches without gaps have code of their own, since
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
    return {tile_.width, tile_.folds, tile_.inner, row_, column_};
  }
  template <class Monoid, unsigned kBuffers, class T, class Act>
  __device__ void fold_threads(const T (&values)[kPack], unsigned buffer, const Act& act) const {
    fold_of_tile<T, kBuffers>().template fold<Monoid>(values, buffer, act);
  }

 private:
  using Batches::for_batches, Batches::kElements, Batches::is_idle;
  using Batches::in_, Batches::tile_, Batches::row_, Batches::column_;
  using Batches::first_, Batches::count_, Batches::levels_;

  template <class T>
  static __device__ T* states_of_outputs() {
    __shared__ T of_output[Tiling::kTileColumns];
    return of_output;
  }

  /// The output that a column of the tile belongs to.
  __device__ unsigned output_of(int column) const {
    return Tiling::kFolds ? static_cast<unsigned>(column) % tile_.inner : static_cast<unsigned>(column);
  }
  __device__ unsigned fold_of(unsigned e) const {
    const int column = column_ + static_cast<int>(e);
    return column < 0 ? 0 : static_cast<unsigned>(column) / tile_.inner;
  }

  /// Folds a batch; kIsWhole: all of its elements are there.
  template <class Monoid, bool kIsWhole, class T, class Leaf>
  __device__ void fold_packs(T (&values)[kPack], const Batch& batch, const Leaf& leaf) const {
    const Array<Prepared, kUnroll> packs([&](unsigned u) { return Op::prepared(batch.packs[u]); });
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e) {
      const unsigned fold = Tiling::kFolds ? fold_of(e) : 0;
      values[e] = fold_leaves<Monoid, kUnroll>([&](unsigned u) {
        const unsigned number = (batch.row + (u * kThreads << levels_)) * tile_.folds + fold;
        const bool is_there = Tiling::kFolds ? u < batch.count && number < count_ : u < batch.count;
        return leaf(packs.values[u][e], kIsWhole || is_there, e, number);
      });
    }
  }

  /// Adds a batch to the tree of batches; after the last of them `values` is the tree.
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
};

}  // namespace hone
