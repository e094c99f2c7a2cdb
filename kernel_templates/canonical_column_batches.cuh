// ColumnBatches: how the threads of a block load a chunk of the columns of a tile.
//
// A chunk of F-fold rows has C / F of them, F a power of two. Thread y of a column takes the rows y,
// y + kThreadsPerOutput, … of the chunk, kUnroll of them at once: a batch. Batch b has the rows whose numbers among the
// thread's own are equal to b, with its bits reversed, modulo the number of batches: each is a node of the tree.
#pragma once

#include "canonical_group.cuh"
#include "column_tile.cuh"

namespace hone {

/// kBatchLevels: a thread takes a chunk in at most 2^kBatchLevels batches. kHolds: go_to() loads the chunk, a single
/// batch, which stays in registers.
template <class Tiling, unsigned kBatchLevels, bool kHolds>
class ColumnBatches {
 public:
  using In = typename Tiling::In;
  using Offset = typename Tiling::Offset;
  using Tile = ColumnTile<Tiling>;
  using ElementPack = typename Tiling::ElementPack;
  static constexpr unsigned kElements = kChunkElements<In>;
  static constexpr unsigned kPack = Tiling::kPackElements, kThreads = Tiling::kThreadsPerOutput;
  static constexpr unsigned kUnroll = Tiling::kUnroll;
  static_assert(!Tiling::kShiftedLoads && kThreads * kUnroll <= kElements && (!kHolds || kBatchLevels == 0));

  /// True if for_batches() has the next batch in flight while act() has one. That takes registers, and operations that
  /// fold a chunk several times find it in a cache from the second time on.
  static constexpr bool kLoadsAhead = kBatchLevels > 0 && requires { Tiling::Op::kFoldsOnce; };

  /// The rows `row`, row + (kThreads << levels_), … of the chunk, of which the first `count` are there.
  struct Batch {
    ElementPack packs[kUnroll];
    unsigned row, count;
  };

  __device__ ColumnBatches(const In* in, const Tile& tile)
      : in_(in), tile_(tile), row_(threadIdx.x / Tiling::kLanes) {
    enter_tile();
  }

  /// To be called when the tile has become another one.
  __device__ void enter_tile() {
    column_ = static_cast<int>(threadIdx.x % Tiling::kLanes * kPack);
    if constexpr (Tiling::kPhaseMatched) {
      const In* const row = in_ + (tile_.first + static_cast<Offset>(row_) * tile_.pitch);
      const unsigned shift = elements_before_alignment<sizeof(ElementPack)>(row);
      if (shift != 0) column_ += static_cast<int>(shift) - static_cast<int>(kPack);
    }
  }

  static __device__ Offset rows_of(const Tile& tile) { return (kElements >> tile.cut_levels) / tile.folds; }

  /// Goes to the chunk that begins with row `first`; `reduced` is the number of elements of a column.
  __device__ void go_to(Offset first, unsigned long long reduced) {
    const Offset most = rows_of(tile_), left = tile_.rows - first;
    const unsigned long long elements = reduced - static_cast<unsigned long long>(first) * tile_.folds;
    first_ = first;
    rows_ = static_cast<unsigned>(left < most ? left : most);
    count_ = elements < kElements ? static_cast<unsigned>(elements) : kElements;
    const unsigned tiles = rows_ == 0 ? 0 : (rows_ - 1) / (kThreads * kUnroll);
    levels_ = tiles == 0 ? 0 : 32 - static_cast<unsigned>(__clz(static_cast<int>(tiles)));
    if constexpr (kHolds) load(held_, 0);
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
  /// True if none of them is in the tile.
  __device__ bool is_idle() const { return column_ >= static_cast<int>(tile_.width); }

 protected:
  /// Calls act(number, batch) for the batches of the chunk, in their order.
  template <class Act>
  __device__ void for_batches(const Act& act) const {
    if constexpr (kHolds) {
      act(0u, held_);
    } else {
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
  }

  const In* in_;
  const Tile& tile_;
  unsigned row_;
  int column_ = 0;
  Offset first_ = 0;
  unsigned rows_ = 0, count_ = 0, levels_ = 0;
  Batch held_;

 private:
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
