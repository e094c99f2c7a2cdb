// ColumnBatches, HeldBatch: how the threads of a block load the batches of a chunk of the columns of a tile.
#pragma once

#include "canonical_column_group.cuh"

namespace hone {

/// Batches that are loaded for each fold. Operations with kByChunk fold several times.
template <class Tiling, unsigned kBatchLevels>
class ColumnBatches : public ColumnGroup<Tiling, kBatchLevels> {
 public:
  using Group = ColumnGroup<Tiling, kBatchLevels>;
  using typename Group::In, typename Group::Offset, typename Group::Tile, typename Group::ElementPack;
  using typename Group::Batch;
  using Group::kElements, Group::kPack, Group::kThreads, Group::kUnroll, Group::is_idle;
  static constexpr bool kIsHeld = false;

  __device__ ColumnBatches(const In* in, const Tile& tile) : Group(tile, in), in_(in), tile_(tile) {}

  /// The rows of a chunk that is not the last.
  static __device__ Offset rows_of(const Tile& tile) { return (kElements >> tile.cut_levels) / tile.folds; }

  /// Goes to the chunk that begins with row `first`; `reduced` is the number of elements of a column.
  __device__ void go_to(Offset first, unsigned long long reduced) {
    const Offset most = rows_of(tile_), left = tile_.rows - first;
    const unsigned long long elements = reduced - static_cast<unsigned long long>(first) * tile_.folds;
    first_ = first;
    rows_ = static_cast<unsigned>(left < most ? left : most);
    count_ = elements < kElements ? static_cast<unsigned>(elements) : kElements;
    if constexpr (kBatchLevels > 0) {
      const unsigned tiles = rows_ == 0 ? 0 : (rows_ - 1) / (kThreads * kUnroll);
      levels_ = tiles == 0 ? 0 : 32 - static_cast<unsigned>(__clz(static_cast<int>(tiles)));
    }
  }

  /// The batches of the chunk, which has one at least.
  __device__ unsigned batches() const { return kBatchLevels == 0 ? 1 : 1u << levels_; }

  __device__ void load(Batch& batch, unsigned number) const {
    batch.row = row_ + kThreads * reversed_bits(number, levels_);
    const unsigned step = kThreads << levels_;
    const unsigned count = batch.row < rows_ ? ((rows_ - 1 - batch.row) / kThreads >> levels_) + 1 : 0;
    batch.count = is_idle() ? 0 : count;
    const Offset row = first_ + batch.row;
    const Offset last = row + static_cast<Offset>(count == 0 ? 0 : count - 1) * step;
    const Offset stride = tile_.pitch * step;
    const In* from = in_ + (tile_.first + row * tile_.pitch + column_);
    if (row < tile_.row_of_packs || last >= tile_.last_of_packs) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        if (u < batch.count) batch.packs[u] = load_singles(row + static_cast<Offset>(u) * step);
    } else if (count >= kUnroll) {  // also in lanes without columns, which must not send their warp both ways
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u, from += stride)
        if (!is_idle()) batch.packs[u] = Tiling::load(from);
    } else {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u, from += stride)
        if (u < batch.count) batch.packs[u] = Tiling::load(from);
    }
  }

  /// The first element of the chunk in column e of the thread.
  __device__ In first(unsigned e) const {
    const int column = column_ + static_cast<int>(e);
    if (count_ == 0 || !is_column(column)) return In{};
    return in_[tile_.first + first_ * tile_.pitch + output_of(column)];
  }

 protected:
  using Group::is_column, Group::output_of;
  using Group::row_, Group::column_, Group::first_, Group::count_, Group::levels_;

  /// Calls act(number, batch) for the batches of the chunk, in their order.
  template <class Act>
  __device__ void for_batches(const Act& act) const {
    Batch batch;
    if (kLoadsAhead) load(batch, 0);
#pragma unroll 1
    for (unsigned b = 0; b < batches(); ++b) {
      Batch next;
      if (!kLoadsAhead) load(batch, b);
      else if (b + 1 < batches()) load(next, b + 1);
      act(b, batch);
      if (kLoadsAhead) batch = next;
    }
  }

 private:
  /// True if for_batches() has the next batch in flight while act() has one. That takes registers, and operations that
  /// fold a chunk several times find it in a cache from the second time on.
  static constexpr bool kLoadsAhead = kBatchLevels > 0 && requires { Tiling::Op::kFoldsOnce; };

  /// A pack that reaches beyond the array, or whose neighbours do.
  __device__ ElementPack load_singles(Offset row) const {
    ElementPack pack = ElementPack::filled(In{});
    const Offset offset = tile_.first + row * tile_.pitch;
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPack); ++e) {
      const int column = column_ + e;
      if (is_column(column) && offset + column < tile_.end) pack.set(static_cast<unsigned>(e), in_[offset + column]);
    }
    return pack;
  }

  const In* in_;
  Tile tile_;
  unsigned rows_ = 0;
};

/// A single batch, which stays in registers.
template <class Tiling>
class HeldBatch : public ColumnGroup<Tiling, 0> {
 public:
  using Group = ColumnGroup<Tiling, 0>;
  using typename Group::In, typename Group::Batch;
  static constexpr bool kIsHeld = true;

  __device__ explicit HeldBatch(const Group& chunk) : Group(chunk) {}

  /// Loads the elements of a chunk, whose place enter() takes over. Loads return in the order in which they were
  /// issued, so what is needed first comes first.
  __device__ void load(const ColumnBatches<Tiling, 0>& chunk) {
    unrolled<Group::kPack>([&](unsigned e) { firsts_[e] = chunk.first(e); });
    chunk.load(batch_, 0);
  }
  __device__ void enter(const Group& chunk) { static_cast<Group&>(*this) = chunk; }

  /// The first element of the chunk in column e of the thread.
  __device__ In first(unsigned e) const { return firsts_[e]; }

 protected:
  template <class Act>
  __device__ void for_batches(const Act& act) const { act(0u, batch_); }

 private:
  Batch batch_;
  In firsts_[Group::kPack];
};

}  // namespace hone
