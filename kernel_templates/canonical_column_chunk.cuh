// ColumnChunk: a chunk of the columns of a tile, shared by the threads of a block.
//
// A chunk of F-fold rows has C / F of them, F a power of two. Thread y of a column takes the rows y,
// y + kThreadsPerOutput, … of the chunk: those strides are folded first, in the thread, then those between threads, in
// shared memory, then those between the folds of a row. A thread loads kUnroll rows at once, a batch, whose tree is a
// node of its own; the batches come in bit-reversed order, so that a binary counter makes the tree of them. Operations
// with kByChunk fold several times: they load a chunk again for each, unless it is a single batch.
#pragma once

#include "canonical_column_fold.cuh"
#include "canonical_group.cuh"

namespace hone {

/// kBatchLevels: a thread takes a chunk in at most 2^kBatchLevels batches.
template <class Tiling, unsigned kBatchLevels>
class ColumnChunk {
 public:
  using Op = typename Tiling::Op;
  using In = typename Tiling::In;
  using Offset = typename Tiling::Offset;
  using Tile = ColumnTile<Tiling>;
  using ElementPack = typename Tiling::ElementPack;
  using Prepared = decltype(Op::prepared(ElementPack()));
  using Element = decltype(Prepared()[0]);
  static constexpr unsigned kElements = kChunkElements<In>;
  static constexpr unsigned kPack = Tiling::kPackElements, kThreads = Tiling::kThreadsPerOutput;
  static constexpr unsigned kUnroll = Tiling::kUnroll;
  static constexpr unsigned kStates = kPack;
  static constexpr bool kKnowsFirst = true;
  static_assert(!Tiling::kShiftedLoads && kThreads * kUnroll <= kElements);

  __device__ ColumnChunk(const In* in, const Tile& tile)
      : in_(in), tile_(tile), row_(threadIdx.x / Tiling::kLanes),
        column_(static_cast<int>(threadIdx.x % Tiling::kLanes * kPack)) {
    if constexpr (Tiling::kPhaseMatched) {
      const In* const row = in + (tile.first + static_cast<Offset>(row_) * tile.pitch);
      const unsigned shift = elements_before_alignment<sizeof(ElementPack)>(row);
      if (shift != 0) column_ += static_cast<int>(shift) - static_cast<int>(kPack);
    }
  }

  static __device__ Offset rows_of(const Tile& tile) { return kElements / tile.folds; }

  /// Goes to the chunk that begins with row `first`; `reduced` is the number of elements of a column.
  __device__ void go_to(Offset first, unsigned long long reduced) {
    const Offset most = rows_of(tile_), left = tile_.rows - first;
    const unsigned long long elements = reduced - static_cast<unsigned long long>(first) * tile_.folds;
    first_ = first;
    rows_ = static_cast<unsigned>(left < most ? left : most);
    count_ = elements < kElements ? static_cast<unsigned>(elements) : kElements;
    const unsigned tiles = rows_ == 0 ? 0 : (rows_ - 1) / (kThreads * kUnroll);
    levels_ = tiles == 0 ? 0 : 32 - static_cast<unsigned>(__clz(static_cast<int>(tiles)));
    if constexpr (kBatchLevels == 0) load(held_, 0);
  }

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
    T* const of_output = states_of_outputs<T>();
    T values[kPack];
    fold_rows<Monoid>(values, [&](Element x, bool is_there, unsigned e, unsigned number) {
      return leaf(Op::present(x, is_there), e, number);
    });
    fold_threads<Monoid, 1>(values, 0, [&](unsigned output, T result) { of_output[output] = result; });
    __syncthreads();
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPack); ++e) {
      const bool is_column = column_ + e >= 0 && column_ + e < static_cast<int>(tile_.width);
      results[e] = of_output[is_column ? output_of(column_ + e) : 0];
    }
  }

  /// The fold, of each of a thread's columns, of leaf(element, is_there, e, number) over the thread's rows.
  template <class Monoid, class T, class Leaf>
  __device__ void fold_rows(T (&values)[kPack], const Leaf& leaf) const {
    T nodes[kBatchLevels + 1][kPack];
#pragma unroll 1
    for (unsigned b = 0; b < (kBatchLevels == 0 ? 1 : 1u << levels_); ++b) {
      Batch loaded;
      if constexpr (kBatchLevels > 0) load(loaded, b);
      const Batch& batch = kBatchLevels > 0 ? loaded : held_;
      const Array<Prepared, kUnroll> packs([&](unsigned u) { return Op::prepared(batch.packs[u]); });
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) {
        const unsigned fold = Tiling::kFolds ? fold_of(e) : 0;
        values[e] = fold_leaves<Monoid, kUnroll>([&](unsigned u) {
          const unsigned number = (batch.row + (u * kThreads << levels_)) * tile_.folds + fold;
          const bool is_there = Tiling::kFolds ? u < batch.count && number < count_ : u < batch.count;
          return leaf(packs.values[u][e], is_there, e, number);
        });
      }
      push<Monoid>(nodes, values, b);
    }
  }

  /// Folds the values of all threads of each column (canonical_column_fold.cuh).
  template <class Monoid, unsigned kBuffers, class T, class Act>
  __device__ void fold_threads(const T (&values)[kPack], unsigned buffer, const Act& act) const {
    ColumnFold<Tiling, T, kBuffers>{tile_, row_, column_}.template fold<Monoid>(values, buffer, act);
  }

 private:
  /// The rows `row`, row + (kThreads << levels_), … of the chunk, of which the first `count` are there.
  struct Batch {
    ElementPack packs[kUnroll];
    unsigned row, count;
  };

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

  __device__ void load(Batch& batch, unsigned number) const {
    batch.row = row_ + kThreads * (__brev(number) >> 1 >> (31 - levels_));
    const unsigned step = kThreads << levels_;
    const bool is_there = batch.row < rows_ && column_ < static_cast<int>(tile_.width);
    batch.count = is_there ? ((rows_ - 1 - batch.row) / kThreads >> levels_) + 1 : 0;
    const Offset row = first_ + batch.row, last = row + static_cast<Offset>(batch.count - is_there) * step;
    const In* const from = in_ + (tile_.first + row * tile_.pitch + column_);
    const Offset stride = tile_.pitch * step;
    if (row >= tile_.row_of_packs && last < tile_.last_of_packs) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        if (u < batch.count) batch.packs[u] = Tiling::load(from + u * stride);
    } else {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        if (u < batch.count) batch.packs[u] = load_singles(row + static_cast<Offset>(u) * step);
    }
  }

  /// A pack that reaches beyond the array, or whose neighbours do.
  __device__ ElementPack load_singles(Offset row) const {
    ElementPack pack = ElementPack::filled(In{});
    const Offset offset = tile_.first + row * tile_.pitch;
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPack); ++e) {
      const int column = column_ + e;
      if (column >= 0 && column < static_cast<int>(tile_.width) && offset + column < tile_.end)
        pack.set(static_cast<unsigned>(e), in_[offset + column]);
    }
    return pack;
  }

  /// Adds a batch to the tree of batches; after the last of them `values` is the tree.
  template <class Monoid, class T>
  __device__ void push(T (&nodes)[kBatchLevels + 1][kPack], T (&values)[kPack], unsigned before) const {
#pragma unroll
    for (unsigned level = 0; level < kBatchLevels; ++level) {
      const bool is_left = (before >> level & 1) == 0;
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) {
        if (is_left) nodes[level][e] = values[e];
        else values[e] = Monoid::combine(nodes[level][e], values[e]);
      }
      if (is_left) break;
    }
  }

  const In* in_;
  const Tile& tile_;
  unsigned row_;
  int column_;
  Offset first_ = 0;
  unsigned rows_ = 0, count_ = 0, levels_ = 0;
  Batch held_;
};

}  // namespace hone
