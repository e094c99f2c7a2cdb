// RMS normalisation of long rows, each by a block or a cluster of blocks. The first packs of a thread are in registers,
// as in rms_norm.cuh, and the following ones in shared memory, as far as the launch has room for them. What exceeds
// both is read twice.
//
// While results of a row are written, packs of the next row are copied to where theirs were. The weights of packs in
// shared memory are loaded again for each row, from L2.
#pragma once

#include "rms_norm.cuh"
#include "shared_packs.cuh"

namespace hone {

/// Kernel is the RmsNorm of these threads and registers.
template <class Kernel, unsigned kBlockThreads>
struct RmsNormShared {
  using ElementPack = typename Kernel::ElementPack;
  using Index = typename Kernel::Index;
  using Row = typename Kernel::Row;
  using Squares = typename Kernel::Squares;
  static constexpr unsigned kPacks = Kernel::kPacks, kRowThreads = Kernel::kRowThreads;
  using Held = ElementPack[kPacks];
  using Shared = SharedPacks<ElementPack, kBlockThreads, kRowThreads>;
  using Tile = typename Shared::Tile;

  /// The index of the thread's pack k in shared memory.
  static __device__ Index index_of(unsigned thread, unsigned k) { return thread + Index(kPacks + k) * kRowThreads; }

  /// Loads the packs of a row that will be in registers.
  static __device__ void load(Held& held, Held& residuals, const Row& row, unsigned thread) {
    Kernel::load(held, row.x, thread);
    if constexpr (Kernel::kHasResidual) Kernel::load(residuals, row.residual, thread);
  }

  /// Calls act(tile, k) for the tiles in shared memory, for the last time, and starts to copy those of `next`.
  static __device__ void refill(Shared& shared, const Row& next, unsigned thread, const auto& act) {
    const Index first = index_of(thread, 0), end = next.x.packs;
    shared.refill(reinterpret_cast<const ElementPack*>(next.x.source.in) + first,
                  first < end ? (end - first - 1) / kRowThreads + 1 : 0, act);
  }

  /// Adds the squares of the packs in shared memory, whose residuals are added first.
  static __device__ void add_shared(float& sum, Shared& shared, const Row& row, unsigned thread) {
    shared.for_tiles(ElementPack::filled(Squares::neutral()), [&](Tile& tile, unsigned k) {
      if constexpr (Kernel::kHasResidual) {
        Tile residual;
        Kernel::load(residual, row.residual, index_of(thread, k));
        Kernel::add(tile, residual, row, index_of(thread, k));
        shared.replace(tile, k);
      }
      Squares::accumulate(sum, tile, Index(0), Index(0));
    });
  }

  static __device__ void run(const RmsNormArguments& all) {
    using CombineRow = typename Kernel::CombineRow;
    const unsigned thread = CombineRow::rank();
    const auto weight = Kernel::row_of(all.weight, all, 0, 0);
    const unsigned long long first = blockIdx.x / Kernel::kClusterBlocks, stride = gridDim.x / Kernel::kClusterBlocks;
    Shared shared{all.shared_packs};
    Held held, residuals, weights;
    pdl_release_then_wait();
    load(held, residuals, Row{all, first}, thread);  // in flight while the blocks of the cluster wait for each other
    refill(shared, Row{all, first}, thread, [](const Tile&, unsigned) {});
    if constexpr (Kernel::kHasWeight) Kernel::load(weights, weight, thread);
    CombineRow combine;
    for (unsigned long long r = first; r < all.rows; r += stride) {
      const Row row{all, r}, next{all, r + stride};
      const Row of_shared = row.beginning(index_of(0, shared.room));
      float sum = Squares::identity();
      if constexpr (Kernel::kHasResidual) Kernel::add(held, residuals, row, thread);
      Squares::accumulate(sum, held, Index(0), Index(0));
      add_shared(sum, shared, of_shared, thread);
      Kernel::add_rest(sum, row, index_of(thread, shared.room));
      Tile next_weights;  // of the next tile; the first ones are loaded while blocks wait for each other
      if constexpr (Kernel::kHasWeight) Kernel::load(next_weights, weight, index_of(thread, 0));
      const float factor = Kernel::factor_of(combine.to_all(sum), all);
      Kernel::write(held, weights, row, thread, factor);
      load(held, residuals, next, thread);
      refill(shared, next, thread, [&](const Tile& tile, unsigned k) {
        Tile of_tile;
        memcpy(of_tile, next_weights, sizeof(Tile));
        if constexpr (Kernel::kHasWeight) Kernel::load(next_weights, weight, index_of(thread, k + Shared::kTile));
        Kernel::write(tile, of_tile, of_shared, index_of(thread, k), factor);
      });
      Kernel::write_rest(row, weight, index_of(thread, shared.room), factor);
    }
  }
};

}  // namespace hone
