// Softmax, or its logarithm, of rows with the same bits for every policy, number of rows, pitch, alignment and device.
//
// The largest element of a row, the smallest if the scale is negative, depends on no order. The weights relative to it
// are exponentials of IEEE operations alone (canonical_exponentials.cuh), and their sum is the canonical tree over the
// row's elements. Four ways, by the length of a row:
//
//   CanonicalSoftmaxLanes   kLanes neighbouring lanes hold a row in registers, kUnroll packs each: at most a chunk, or
//                           a few chunks if they are a warp.
//   CanonicalSoftmaxBlock   the warps of a block, or of a cluster, hold a row in registers. They share its chunks
//                           evenly: each takes 2^run_levels ≤ kChunks of them, and a block arguments.chunks.
//   CanonicalSoftmaxShared  (canonical_softmax_shared.cuh) a warp, a block or a cluster holds a row in shared memory.
//   CanonicalSoftmaxRows    (canonical_softmax_rows.cuh) rows of any length are read three times.
//
// May be in place. Constraints: kBlockThreads is a power of two; rows begin at multiples of kPack elements in both
// arrays, and are no longer than what is held; kChunks · kPack ≤ 32.
#pragma once

#include "canonical_block.cuh"
#include "canonical_softmax_chunk.cuh"

namespace hone {

/// The grid-stride loop is over tiles of as many rows as a block has groups of lanes, times kRows: a group loads its
/// rows before it computes any.
template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows>
struct CanonicalSoftmaxLanes {
  using Acc = typename Types::Acc;
  static constexpr unsigned kGroups = kBlockThreads / kLanes, kMostColumns = kLanes * kUnroll * Types::kPack;
  static constexpr unsigned kTileRows = kGroups * kRows, kChunk = kChunkElements<typename Types::In>;
  static constexpr unsigned kChunks = kMostColumns > kChunk ? kMostColumns / kChunk : 1;
  using Held = HeldChunks<Types, kLanes, kUnroll, kChunks>;
  static_assert(kLanes == kWarpThreads || (kLanes < kWarpThreads && kChunks == 1));

  static __device__ void run(const typename Types::Arguments& all) {
    pdl_release_then_wait();
    for (unsigned long long tile = blockIdx.x; tile * kTileRows < all.rows; tile += gridDim.x) {
      const unsigned long long first = tile * kTileRows + threadIdx.x / kLanes;
      const auto columns_of = [&](unsigned r) {
        return first + r * kGroups < all.rows ? static_cast<unsigned>(all.columns) : 0;
      };
      Held held[kRows];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r)
        held[r].load(softmax_input<Types>(all, first + r * kGroups), columns_of(r), all.scale.factor);
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r)
        of_row(held[r], softmax_output<Types>(all, first + r * kGroups), columns_of(r), all.scale.factor);
    }
  }

 private:
  static __device__ void of_row(Held& held, typename Types::Out* out, unsigned columns, Acc factor) {
    Acc heaviest = held.heaviest(factor);
#pragma unroll
    for (unsigned mask = 1; mask < kLanes; mask *= 2)
      heaviest = larger<false>(heaviest, shuffle_xor(heaviest, mask));
    const SoftmaxWeight<Types> weight(heaviest, factor);
    Acc values[kChunks * Types::kPack];
    held.weigh(values, columns, weight);
    const Acc sum = fold_lanes<CanonicalSum<Acc>, Types::kPack, kChunks, kLanes>(values);
    held.store(out, columns, weight, weight.norm(sum));
  }
};

template <class Types, unsigned kBlockThreads, unsigned kChunks, unsigned kClusterBlocks>
struct CanonicalSoftmaxBlock {
  using Acc = typename Types::Acc;
  using In = typename Types::In;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kElements = kChunkElements<In>;
  using Held = HeldChunks<Types, kWarpThreads, kChunks * kElements / (kWarpThreads * Types::kPack), kChunks>;
  static constexpr unsigned kMostColumns = kBlockThreads / kWarpThreads * kChunks * kElements * kClusterBlocks;

  static __device__ void run(const typename Types::Arguments& all) {
    Warps<HeaviestElement<Types>> heaviest_warp;
    Warps<Weight> warps;
    unsigned chunk = (threadIdx.x / kWarpThreads) << all.run_levels;  // the warp's first
    unsigned end = chunk + (1u << all.run_levels);
    if constexpr (kClusterBlocks > 1) {
      end = (end < all.chunks ? end : all.chunks) + rank_in_cluster() * all.chunks;
      chunk += rank_in_cluster() * all.chunks;
    }
    const unsigned first = chunk * kElements, behind = end * kElements;
    const auto last = static_cast<unsigned>(all.columns < behind ? all.columns : behind);
    const unsigned columns = last < first ? 0 : last - first;
    for (unsigned long long row = blockIdx.x / kClusterBlocks; row < all.rows; row += gridDim.x / kClusterBlocks) {
      Held held;
      held.load(softmax_input<Types>(all, row) + first, columns, all.scale.factor);
      const Acc of_warp = CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kWarpThreads>(
          held.heaviest(all.scale.factor));
      const Weight weight(heaviest_warp.tree(of_warp), all.scale.factor);
      Acc values[kChunks * Types::kPack];
      held.weigh(values, columns, weight);
      const Acc sum = warps.tree(fold_lanes<CanonicalSum<Acc>, Types::kPack, kChunks>(values));
      held.store(softmax_output<Types>(all, row) + first, columns, weight, weight.norm(sum));
    }
  }

 private:
  /// The tree of what the warps of a row have each in all lanes; all threads get it.
  template <class Op>
  struct Warps {
    Combine<CanonicalCombine<Op>, kBlockThreads, kClusterBlocks, Grid::none, true> combine;

    __device__ Acc tree(Acc of_warp) {
      if constexpr (kClusterBlocks > 1) return combine.to_all(threadIdx.x % kWarpThreads == 0 ? of_warp : Op::absent());
      else return CanonicalBlock<Op, kBlockThreads>::all_of_warps(of_warp, 0);
    }
  };
};

}  // namespace hone
