// RMS normalisation of long rows, each by a block or a cluster of blocks. The first packs of a thread are in registers,
// as in rms_norm.cuh, and the following ones in shared memory, as far as the launch has room for them. What exceeds
// both is read twice.
//
// While results of a row are written, packs of the next row are copied to where theirs were. The weights of packs in
// shared memory are loaded again for each row, from L2. Rows may begin anywhere: packs are aligned in x, as
// asynchronous copies want them.
#pragma once

#include "rms_norm.cuh"
#include "shared_packs.cuh"

namespace hone {

/// Kernel is the RmsNorm of these threads and registers, with packs that are aligned in x.
template <class Kernel, unsigned kBlockThreads, bool kAnyStart>
struct RmsNormShared {
  using ElementPack = typename Kernel::ElementPack;
  using Index = typename Kernel::Index;
  using Row = typename Kernel::Row;
  using Squares = typename Kernel::Squares;
  static constexpr unsigned kPacks = Kernel::kPacks, kRowThreads = Kernel::kRowThreads;
  using Shared = SharedPacks<ElementPack, kBlockThreads, kRowThreads>;
  using Tile = typename Shared::Tile;

  /// The index of the thread's pack k in shared memory.
  static __device__ Index index_of(unsigned thread, unsigned k) { return thread + Index(kPacks + k) * kRowThreads; }

  /// The row as far as it is in registers and shared memory.
  static __device__ Row held_part(const Row& row, unsigned room) {
    Row part = row;
    const Index held = index_of(0, room);
    if (held < part.end) part.end = held;
    return part;
  }

  /// Calls act(tile, k) for the tiles in shared memory, for the last time, and starts to copy those of `next`.
  static __device__ void refill(Shared& shared, const Row& next, const auto& act) {
    const Index first = index_of(next.thread, 0), end = next.end;
    shared.refill(next.packs(next.x) + first, first < end ? (end - first - 1) / kRowThreads + 1 : 0, act);
  }

  /// Adds the squares of the packs in shared memory, whose residuals are added first.
  static __device__ void add_shared(float& sum, Shared& shared, const Row& row) {
    shared.for_tiles(ElementPack::filled(Squares::neutral()), [&](Tile& tile, unsigned k) {
      if constexpr (Kernel::kHasResidual) {
        Tile residual;
        row.load(residual, row.residual, index_of(row.thread, k));
        Kernel::add(tile, residual, row, index_of(row.thread, k));
        shared.replace(tile, k);
      }
      Squares::accumulate(sum, tile, Index(0), Index(0));
    });
  }

  static __device__ void run(const RmsNormArguments& all) {
    using CombineRow = typename Kernel::CombineRow;
    const unsigned thread = CombineRow::rank();
    const unsigned long long first = blockIdx.x / Kernel::kClusterBlocks, stride = gridDim.x / Kernel::kClusterBlocks;
    Shared shared{all.shared_packs};
    typename Kernel::Held held;
    typename Kernel::Weights weights;
    pdl_release_then_wait();
    const Row first_row(all, first, thread);
    held.load(first_row);  // in flight while the blocks of the cluster wait for each other
    refill(shared, first_row, [](const Tile&, unsigned) {});
    if constexpr (!kAnyStart) weights.load(first_row);
    CombineRow combine;
    for (unsigned long long r = first; r < all.rows; r += stride) {
      const Row row(all, r, thread), next(all, r + stride, thread);
      const Row of_shared = held_part(row, shared.room);
      if constexpr (kAnyStart) weights.load(row);
      float sum = held.squares(row);
      add_shared(sum, shared, of_shared);
      Kernel::add_rest(sum, row, index_of(thread, shared.room));
      Tile next_weights;  // of the next tile; the first ones are loaded while blocks wait for each other
      if constexpr (Kernel::kHasWeight) row.load(next_weights, row.weight, index_of(thread, 0));
      const float factor = Kernel::factor_of(combine.to_all(sum), all);
      held.write(row, weights, factor);
      held.load(next);
      refill(shared, next, [&](const Tile& tile, unsigned k) {
        Tile of_tile;
        memcpy(of_tile, next_weights, sizeof(Tile));
        if constexpr (Kernel::kHasWeight) row.load(next_weights, row.weight, index_of(thread, k + Shared::kTile));
        Kernel::write(tile, Kernel::weights_in(of_tile), of_shared, index_of(thread, k), factor);
      });
      Kernel::write_rest(row, index_of(thread, shared.room), factor);
    }
  }
};

}  // namespace hone
