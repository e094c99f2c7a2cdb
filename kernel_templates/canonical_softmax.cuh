// Softmax, or its logarithm, of rows with the same bits for every policy, number of rows, pitch, alignment and device.
//
// The largest element of a row, the smallest if the scale is negative, depends on no order. The weights relative to it
// are exponentials of IEEE operations alone (canonical_exponentials.cuh), and their sum is the canonical tree over the
// row's elements. Three ways, by the length of a row:
//
//   CanonicalSoftmaxLanes   kLanes neighbouring lanes hold a row of at most a chunk in registers, kUnroll packs each.
//   CanonicalSoftmaxBlock   the warps of a block, or of a cluster, hold a row in registers, kChunks chunks each.
//   CanonicalSoftmaxRows    (canonical_softmax_rows.cuh) rows of any length are read three times.
//
// May be in place. Constraints: kBlockThreads is a power of two; rows begin at multiples of kPack elements in both
// arrays, and are no longer than what is held.
#pragma once

#include "canonical_block.cuh"
#include "canonical_softmax_chunk.cuh"

namespace hone {

/// The grid-stride loop is over tiles of as many rows as a block has groups of lanes, times kRows: a group loads its
/// rows before it computes any.
template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows>
struct CanonicalSoftmaxLanes {
  using Acc = typename Types::Acc;
  using Held = HeldChunk<Types, kLanes, kUnroll>;
  static constexpr unsigned kGroups = kBlockThreads / kLanes, kMostColumns = kLanes * kUnroll * Types::kPack;
  static constexpr unsigned kTileRows = kGroups * kRows;
  static_assert(kLanes <= kWarpThreads && kMostColumns <= kChunkElements<typename Types::In>);

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
    Acc values[Types::kPack];
    held.weigh(values, weight);
    const Acc sum = fold_lanes<CanonicalSum<Acc>, Types::kPack, 1, kLanes>(values);
    held.store(out, columns, weight, weight.divisor(sum));
  }
};

template <class Types, unsigned kBlockThreads, unsigned kChunks, unsigned kClusterBlocks>
struct CanonicalSoftmaxBlock {
  using Acc = typename Types::Acc;
  using In = typename Types::In;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kElements = kChunkElements<In>;
  using Held = HeldChunk<Types, kWarpThreads, kElements / (kWarpThreads * Types::kPack)>;
  static constexpr unsigned kBlockColumns = kBlockThreads / kWarpThreads * kChunks * kElements;
  static constexpr unsigned kMostColumns = kBlockColumns * kClusterBlocks;

  static __device__ void run(const typename Types::Arguments& all) {
    Warps<HeaviestElement<Types>> heaviest_warp;
    Warps<Weight> warps;
    const auto columns = static_cast<unsigned>(all.columns);
    unsigned first = threadIdx.x / kWarpThreads * kChunks * kElements;  // of the warp
    if constexpr (kClusterBlocks > 1) first += rank_in_cluster() * kBlockColumns;
    const auto columns_of = [&](unsigned k) {
      const unsigned begin = first + k * kElements, left = columns < begin ? 0 : columns - begin;
      return left < kElements ? left : kElements;
    };
    for (unsigned long long row = blockIdx.x / kClusterBlocks; row < all.rows; row += gridDim.x / kClusterBlocks) {
      Held held[kChunks];
      Acc heaviest = lowest<Acc>();
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k)
        held[k].load(softmax_input<Types>(all, row) + first + k * kElements, columns_of(k), all.scale.factor);
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k) heaviest = larger<false>(heaviest, held[k].heaviest(all.scale.factor));
      heaviest = CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kWarpThreads>(heaviest);
      const Weight weight(heaviest_warp.tree(heaviest), all.scale.factor);
      Acc values[kChunks * Types::kPack];
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k) {
        Acc of_chunk[Types::kPack];
        held[k].weigh(of_chunk, weight);
        memcpy(values + k * Types::kPack, of_chunk, sizeof(of_chunk));
      }
      const Acc divisor = weight.divisor(warps.tree(fold_lanes<CanonicalSum<Acc>, Types::kPack, kChunks>(values)));
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k)
        held[k].store(softmax_output<Types>(all, row) + first + k * kElements, columns_of(k), weight, divisor);
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
