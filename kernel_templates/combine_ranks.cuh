// Combines the partials that ranks have reduced their shards to, in the order of ranks.
//
// The order is a binary tree of neighbours: ranks 2i and 2i + 1, then pairs 2i and 2i + 1, and so on, the lower one on
// the left; a right one that does not exist is left out. So the bits of a result depend on the partials alone: ranks
// with other winners, or on other GPUs, get the same. kLanes neighbouring lanes make one output; each makes the subtree
// of a run of ranks, a power of two of them. A grid-stride loop over rows.
//
// A lane without ranks takes no part: an identity may change a −0.
//
// Constraints: kLanes is a power of two, at most 32; there are at most kLanes · 2^(kLevels − 1) ranks; kBlockThreads is
// a multiple of 32.
#pragma once

#include "combine_arguments.h"
#include "grid.cuh"
#include "lanes.cuh"
#include "rank_partials.cuh"

namespace hone {

template <class Op, class Out, unsigned kOutputs, unsigned kLanes, unsigned kLevels, unsigned kBlockThreads>
struct CombineRanks {
  using State = typename Op::State;
  static_assert(kLanes <= kWarpThreads && (kLanes & (kLanes - 1)) == 0 && kBlockThreads % kWarpThreads == 0);

  static __device__ void run(const CombineArguments& all) {
    pdl_release_then_wait();
    constexpr unsigned kRows = kBlockThreads / kLanes;
    const unsigned lane = threadIdx.x % kLanes;
    unsigned each = 1;
    while (each * kLanes < all.ranks) each *= 2;
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
  static constexpr unsigned kLoads = kLevels == 1 ? 1 : 8;  ///< in flight

  static __device__ State of_ranks(const CombineArguments& all, unsigned long long row, unsigned first,
                                   unsigned count) {
    const auto block = [&](unsigned rank) {
      return RankBlock<typename Op::In>{static_cast<const char*>(all.partials) + rank * all.block_bytes, all};
    };
    // Complete subtrees of 2^level ranks, where a bit of `done` is set: a binary counter.
    State subtrees[kLevels];
    unsigned done = 0;
    const unsigned end = first + count < all.ranks ? first + count : all.ranks;
    for (unsigned batch = first; batch < end; batch += kLoads) {
      State held[kLoads];
#pragma unroll
      for (unsigned u = 0; u < kLoads; ++u)
        if (batch + u < end) held[u] = Op::load(block(batch + u), row);
#pragma unroll
      for (unsigned u = 0; u < kLoads; ++u) {
        if (batch + u >= end) break;
        State state = held[u];
        unsigned level = 0;
        for (; (done >> level & 1) != 0; ++level) state = Op::combine(subtrees[level], state);
        subtrees[level] = state;
        ++done;
      }
    }
    State state{};
    bool has_right = false;
#pragma unroll
    for (unsigned level = 0; level < kLevels; ++level) {
      if ((done >> level & 1) == 0) continue;
      state = has_right ? Op::combine(subtrees[level], state) : subtrees[level];
      has_right = true;
    }
    return state;
  }
};

}  // namespace hone
