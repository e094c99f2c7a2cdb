// Softmax, or its logarithm, of rows with the same bits for every policy, number of rows, pitch, alignment and device.
//
// The largest element of a row, the smallest if the scale is negative, depends on no order. The weights relative to it
// are exponentials of IEEE operations alone (canonical_exponentials.cuh), and their sum is the canonical tree over the
// row's elements. Four ways, by the length of a row:
//
//   CanonicalSoftmaxLanes   kLanes neighbouring lanes hold a row in registers, kUnroll packs each: at most a chunk, or
//                           a few chunks if they are a warp.
//   CanonicalSoftmaxBlock   a warp, or the warps of a block or a cluster, hold a row in registers. They share its
//                           chunks evenly: each takes 2^run_levels ≤ kChunks of them, and a block arguments.chunks.
//   CanonicalSoftmaxShared  (canonical_softmax_shared.cuh) a warp, a block or a cluster holds a row in shared memory.
//   CanonicalSoftmaxRows    (canonical_softmax_rows.cuh) rows of any length are read twice.
//
// What holds a row sums its weights while it looks for the heaviest element, relative to the power of two of the row
// before. If the row turns out to have another one, it is loaded again.
//
// May be in place. Constraints: kBlockThreads is a power of two; rows begin at multiples of kPack elements in both
// arrays, and are no longer than what is held; kChunks · kPack ≤ 32.
#pragma once

#include "canonical_softmax_chunk.cuh"
#include "combine.cuh"

namespace hone {

extern __shared__ __align__(16) unsigned char rows_in_smem[];

/// The grid-stride loop is over tiles of as many rows as a block has groups of lanes, times kRows: a group loads its
/// rows before it computes any.
template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows>
struct CanonicalSoftmaxLanes {
  using Acc = typename Types::Acc;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kGroups = kBlockThreads / kLanes, kMostColumns = kLanes * kUnroll * Types::kPack;
  static constexpr unsigned kTileRows = kGroups * kRows, kChunk = kChunkElements<typename Types::In>;
  static constexpr unsigned kChunks = kMostColumns > kChunk ? kMostColumns / kChunk : 1;
  using Held = HeldRow<Types, kLanes, kUnroll, kChunks>;
  static_assert(kLanes == kWarpThreads || (kLanes < kWarpThreads && kChunks == 1));

  static __device__ void run(const typename Types::Arguments& all) {
    pdl_release_then_wait();
    Weight weight(all.scale.factor);
    for (unsigned long long tile = blockIdx.x; tile * kTileRows < all.rows; tile += gridDim.x) {
      const unsigned long long first = tile * kTileRows + threadIdx.x / kLanes;
      Held held[kRows];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) load(held[r], all, first + r * kGroups);
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        const auto row = first + r * kGroups;
        for (;;) {
          Acc heaviest = held[r].heaviest(all.scale.factor);
#pragma unroll
          for (unsigned mask = 1; mask < kLanes; mask *= 2)
            heaviest = larger<false>(heaviest, shuffle_xor(heaviest, mask));
          const Acc sum = held[r].weigh(static_cast<unsigned>(all.columns), weight.powers);
          if (__all_sync(kFullMask, weight.settle(heaviest))) {
            held[r].store(softmax_output<Types>(all, row), columns_of(all, row), weight, sum);
            break;
          }
          load(held[r], all, row);
        }
      }
    }
  }

 private:
  static __device__ unsigned columns_of(const typename Types::Arguments& all, unsigned long long row) {
    return row < all.rows ? static_cast<unsigned>(all.columns) : 0;
  }
  static __device__ void load(Held& held, const typename Types::Arguments& all, unsigned long long row) {
    held.load(softmax_input<Types>(all, row), columns_of(all, row), all.scale.factor);
  }
};

/// kWarps of a block share a row: one, or all. kAhead: while a row is computed and stored, the next one is copied to
/// shared memory, where each lane has a place for its packs.
template <class Types, unsigned kBlockThreads, unsigned kWarps, unsigned kChunks, unsigned kClusterBlocks, bool kAhead>
struct CanonicalSoftmaxBlock {
  using Acc = typename Types::Acc;
  using In = typename Types::In;
  using Arguments = typename Types::Arguments;
  static constexpr unsigned kElements = kChunkElements<In>;
  static constexpr unsigned kUnroll = kChunks * kElements / (kWarpThreads * Types::kPack);
  using Held = HeldRow<Types, kWarpThreads, kUnroll, kChunks>;
  static constexpr unsigned kRows = kBlockThreads / kWarpThreads / kWarps;  ///< of a block, at once
  static constexpr unsigned kMostColumns = kWarps * kChunks * kElements * kClusterBlocks;
  static_assert(kRows == 1 || (kWarps == 1 && kClusterBlocks == 1));

  static __device__ void run(const Arguments& all) {
    Combine<CanonicalCombine<CanonicalPart<Acc>>, kWarps * kWarpThreads, kClusterBlocks, Grid::none, true> combine;
    const unsigned warp = threadIdx.x / kWarpThreads;
    unsigned chunk = kWarps == 1 ? 0 : warp << all.run_levels;  // the warp's first
    unsigned end = chunk + (1u << all.run_levels);
    if constexpr (kClusterBlocks > 1) {
      end = (end < all.chunks ? end : all.chunks) + rank_in_cluster() * all.chunks;
      chunk += rank_in_cluster() * all.chunks;
    }
    const unsigned first = chunk * kElements, behind = end * kElements;
    const auto last = static_cast<unsigned>(all.columns < behind ? all.columns : behind);
    const unsigned columns = uniform(last < first ? 0 : last - first);
    const unsigned long long step = gridDim.x / kClusterBlocks * kRows;
    unsigned long long row = blockIdx.x / kClusterBlocks * kRows + (kRows > 1 ? warp : 0);
    SoftmaxWeight<Types> weight(all.scale.factor);
    if constexpr (kAhead) copy(all, row, first, columns);
    while (row < all.rows) {
      const In* const in = softmax_input<Types>(all, row) + first;
      Held held;
      if constexpr (kAhead) {
        wait_for_copies();
        held.template load_copied<kBlockThreads>(places(), in, columns, all.scale.factor);
        copy(all, row + step, first, columns);
      } else {
        held.load(in, columns, all.scale.factor);
      }
      const Acc heaviest = held.heaviest(all.scale.factor), of_warp = held.weigh(columns, weight.powers);
      const auto whole = combine.to_all({heaviest, threadIdx.x % kWarpThreads == 0 ? of_warp : -Acc(0)});
      if (weight.settle(whole.heaviest)) {
        held.store(softmax_output<Types>(all, row) + first, columns, weight, whole.sum);
        row += step;
      } else if constexpr (kAhead) {
        wait_for_copies();
        copy(all, row, first, columns);
      }
    }
  }

 private:
  /// This thread's places, kBlockThreads apart: no thread reads what another one copied.
  static __device__ typename Types::InPack* places() {
    return reinterpret_cast<typename Types::InPack*>(rows_in_smem) + threadIdx.x;
  }
  static __device__ void copy(const Arguments& all, unsigned long long row, unsigned first, unsigned columns) {
    if (row >= all.rows) return;
    Held::template copy<kBlockThreads>(places(), softmax_input<Types>(all, row) + first, columns);
  }
};

}  // namespace hone
