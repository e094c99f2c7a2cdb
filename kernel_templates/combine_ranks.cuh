// Combines the partials that ranks have reduced their shards to, in the order of ranks.
//
// kLanes neighbouring lanes make one output. Each combines a run of ⌈ranks ÷ lanes⌉ ranks, one after the other; then
// neighbouring lanes combine in a tree, the lower one on the left. For up to 32 ranks that tree does not depend on
// kLanes; for more, kLanes is 32. So the bits of a result depend on the partials and the number of ranks alone: ranks
// with other winners, or on other GPUs, get the same. A grid-stride loop over rows.
//
// A lane without ranks takes no part: an identity may change a −0.
//
// Constraints: kLanes is a power of two, at most 32, and at least the number of ranks unless it is 32; kBlockThreads is
// a multiple of 32.
#pragma once

#include "combine_arguments.h"
#include "grid.cuh"
#include "kernel.cuh"
#include "lanes.cuh"
#include "rank_partials.cuh"

namespace hone {

template <class Op, class Out, unsigned kOutputs, unsigned kLanes, unsigned kBlockThreads>
struct CombineRanks {
  using State = typename Op::State;
  static_assert(kLanes <= kWarpThreads && (kLanes & (kLanes - 1)) == 0 && kBlockThreads % kWarpThreads == 0);

  static __device__ void run(const CombineArguments& all) {
    pdl_release_then_wait();
    constexpr unsigned kRows = kBlockThreads / kLanes;
    const unsigned lane = threadIdx.x % kLanes;
    const unsigned each = (all.ranks + kLanes - 1) / kLanes;
    const unsigned busy = (all.ranks + each - 1) / each;  // lanes that have ranks
    const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * kRows;
    for (unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * kRows; first < all.rows;
         first += stride) {
      // Every lane of a warp shuffles, those behind the last row too.
      const unsigned long long row = first + threadIdx.x / kLanes;
      State state{};
      if (row < all.rows && lane < busy) state = of_ranks(all, row, lane * each, each);
#pragma unroll
      for (unsigned apart = 1; apart < kLanes; apart *= 2) {
        const State right = shuffle_down(state, apart);
        if (lane % (2 * apart) == 0 && lane + apart < busy) state = Op::combine(state, right);
      }
      if (row < all.rows && lane == 0) Op::template write<Out>(state, static_cast<Out*>(all.out) + row * kOutputs);
    }
  }

 private:
  static __device__ State of_ranks(const CombineArguments& all, unsigned long long row, unsigned first, unsigned count) {
    const auto block = [&](unsigned rank) {
      return RankBlock<typename Op::In>{static_cast<const char*>(all.partials) + rank * all.block_bytes, all};
    };
    State state = Op::load(block(first), row);
    const unsigned end = first + count < all.ranks ? first + count : all.ranks;
#pragma unroll 8
    for (unsigned rank = first + 1; rank < end; ++rank) state = Op::combine(state, Op::load(block(rank), row));
    return state;
  }
};

}  // namespace hone
