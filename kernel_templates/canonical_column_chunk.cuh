// ColumnChunk: a chunk of the columns of a tile, shared by the threads of a block, which load its batches for each fold
// (ColumnBatches), or hold the only one in registers (HeldBatch).
#pragma once

#include "canonical_column_batches.cuh"

namespace hone {

/// It is a group of canonical_group.cuh for operations with kByChunk.
template <class Batches>
class ColumnChunk : public Batches {
 public:
  using Op = typename Batches::Op;
  using typename Batches::Batch;
  using Batches::kPack, Batches::kThreads, Batches::kUnroll;
  template <class T>
  using Nodes = typename Batches::template Nodes<T>;
  static constexpr bool kKnowsFirst = true;

  __device__ explicit ColumnChunk(const auto&... of) : Batches(of...) {}

  template <class Monoid, class T, class Leaf>
  __device__ void fold(T (&results)[kPack], const Leaf& leaf, const auto&... done) const {
    Nodes<T> nodes;
    this->for_batches([&](unsigned b, const Batch& batch) {
      this->template fold_batch<Monoid>(nodes, results, batch, b,
                                        [&](typename Batches::Element x, bool is_there, unsigned e, unsigned number) {
                                          return leaf(Op::present(x, is_there), e, number);
                                        });
    });
    (done(), ...);
    this->template combine_threads<Monoid>(results);
  }

  /// The fold, of each of a thread's columns, of leaf(element, is_there, e, number) over the thread's rows.
  template <class Monoid, class T, class Leaf>
  __device__ void fold_rows(T (&values)[kPack], const Leaf& leaf) const {
    Nodes<T> nodes;
    this->for_batches([&](unsigned b, const Batch& batch) {
      this->template fold_packs<Monoid, false>(values, batch, leaf);
      this->template push<Monoid>(nodes, values, b);
    });
  }

  /// Calls act(row, pack) for each of a thread's rows of the chunk.
  template <class Act>
  __device__ void for_packs(const Act& act) const {
    this->for_batches([&](unsigned, const Batch& batch) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        if (u < batch.count) act(this->first_ + batch.row + (u * kThreads << this->levels_), batch.packs[u]);
    });
  }
};

}  // namespace hone
