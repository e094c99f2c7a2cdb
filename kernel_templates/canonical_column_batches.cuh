// ColumnBatches: how the threads of a block load a chunk of the columns of a tile.
//
// A chunk of F-fold rows has C / F of them, F a power of two. Thread y of a column takes the rows y,
// y + kThreadsPerOutput, … of the chunk, kUnroll of them at once: a batch. Batch b has the rows whose numbers among the
// thread's own are equal to b, with its bits reversed, modulo the number of batches: each is a node of the tree.
#pragma once

#include "canonical_group.cuh"
#include "column_tile.cuh"

namespace hone {

/// kBatchLevels: a thread takes a chunk in at most 2^kBatchLevels batches.
template <class Tiling, unsigned kBatchLevels>
class ColumnBatches {
 public:
  using In = typename Tiling::In;
  using Offset = typename Tiling::Offset;
  using Tile = ColumnTile<Tiling>;
  using ElementPack = typename Tiling::ElementPack;
  static constexpr unsigned kElements = kChunkElements<In>;
  static constexpr unsigned kPack = Tiling::kPackElements, kThreads = Tiling::kThreadsPerOutput;
  static constexpr unsigned kUnroll = Tiling::kUnroll;
  static_assert(!Tiling::kShiftedLoads && kThreads * kUnroll <= kElements);

  __device__ ColumnBatches(const In* in, const Tile& tile)
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

  /// Calls act(row, pack) for each of a thread's rows of the chunk.
  template <class Act>
  __device__ void for_packs(const Act& act) const {
    for_batches([&](unsigned, const Batch& batch) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        if (u < batch.count) act(first_ + batch.row + (u * kThreads << levels_), batch.packs[u]);
    });
  }

  /// The first of a thread's columns. It may lie before the tile, and so may some of those behind it.
  __device__ int column() const { return column_; }

 protected:
  /// The rows `row`, row + (kThreads << levels_), … of the chunk, of which the first `count` are there.
  struct Batch {
    ElementPack packs[kUnroll];
    unsigned row, count;
  };

  /// Calls act(number, batch) for the batches of the chunk, in their order.
  template <class Act>
  __device__ void for_batches(const Act& act) const {
#pragma unroll 1
    for (unsigned b = 0; b < (kBatchLevels == 0 ? 1 : 1u << levels_); ++b) {
      if constexpr (kBatchLevels > 0) {
        Batch batch;
        load(batch, b);
        act(b, batch);
      } else {
        act(b, held_);
      }
    }
  }

  const In* in_;
  const Tile& tile_;
  unsigned row_;
  int column_;
  Offset first_ = 0;
  unsigned rows_ = 0, count_ = 0, levels_ = 0;
  Batch held_;

 private:
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
};

}  // namespace hone
