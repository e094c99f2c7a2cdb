// CanonicalBlock: how a block makes the canonical tree of what its warps, or other blocks, have found.
#pragma once

#include "canonical_tree.cuh"
#include "combine.cuh"
#include "monoids.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads>
struct CanonicalBlock {
  using State = typename Op::State;
  using Tree = CanonicalCombine<Op>;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static constexpr unsigned kRounds = kWarpThreads;
  static constexpr unsigned kThreadPartials = 4;  ///< loaded at once
  static constexpr unsigned kMostPartials = kRounds * kBlockThreads * kThreadPartials;

  static __device__ unsigned warp() { return threadIdx.x / kWarpThreads; }

  /// Keeps a warp's State of one of kRounds rounds in shared memory. All States together are in the order of their
  /// numbers, round · kWarps + warp.
  static __device__ void keep(State state, unsigned round) {
    if (threadIdx.x % kWarpThreads == 0) kept()[round * kWarps + warp()] = state;
  }

  /// Number threadIdx.x of the States of `rounds` rounds, after a barrier.
  static __device__ State value_of_thread(unsigned rounds) {
    __syncthreads();
    return threadIdx.x < rounds * kWarps ? kept()[threadIdx.x] : Op::absent();
  }

  /// The tree of what the warps have in `rounds` rounds, of_round(round); true in the one thread that has it. No
  /// rounds: it is what the first warp has, and nobody waits.
  template <class Combine_, class OfRound>
  static __device__ bool combine_rounds(Combine_& combine, State& state, unsigned rounds, const OfRound& of_round) {
    unsigned round = 0;
    do {
      state = of_round(round);
      if (rounds == 0) return threadIdx.x == 0;
      if (rounds == 1) return combine.to_first_of_lanes(state);
      keep(state, round);
    } while (++round < rounds);
    return combine.to_first(state = value_of_thread(rounds));
  }

  /// The tree of each kWarps neighbouring threads, in all of them.
  static __device__ State tree_of_warps(State state) { return Tree::template in_all_lanes<kWarps>(state); }

  /// The State that each thread combines to the tree of `count` partials, at most kMostPartials.
  static __device__ State of_partials(const State* partials, unsigned count) {
    if (count <= kRoundPartials) return neighbours_of_thread(partials, count, 0);
    unsigned round = 0;
#pragma unroll 1
    for (unsigned begin = 0; begin < count; begin += kRoundPartials)
      keep(Tree::template in_all_lanes<kWarpThreads>(neighbours_of_thread(partials, count, begin)), round++);
    return value_of_thread(round);
  }

  /// The tree of `count` partials, at most kMostPartials; true in the one thread that has it.
  template <class Combine_>
  static __device__ bool combine_partials(Combine_& combine, State& state, const State* partials, unsigned count) {
    return combine.to_first(state = of_partials(partials, count));
  }

 private:
  static constexpr unsigned kRoundPartials = kBlockThreads * kThreadPartials;

  /// The tree of the partials that the thread takes of those from `begin` on: neighbours, loaded by 16 bytes where
  /// their address allows it. The sum of 2^20 halves in 264 blocks takes 2.57 µs in a graph so; with a load for each
  /// 2.62, and 2.71 where lanes had neighbouring ones and shuffled four times as much (H200, CUDA 13.0, 2026-11-30).
  static __device__ State neighbours_of_thread(const State* partials, unsigned count, unsigned begin) {
    const unsigned first = begin + threadIdx.x * kThreadPartials;
    State some[kThreadPartials];
    const bool is_aligned = reinterpret_cast<unsigned long long>(partials) % sizeof(uint4) == 0;
    if (is_aligned && first + kThreadPartials <= count)
      load_packs_from_l2(some, partials + first);
    else
#pragma unroll
      for (unsigned i = 0; i < kThreadPartials; ++i)
        some[i] = first + i < count ? load_from_l2(partials + first + i) : Op::absent();
    return combine_tree<Op, kThreadPartials>(some);
  }

  static __device__ State* kept() {
    alignas(16) __shared__ State of_run[kRounds * kWarps];
    return of_run;
  }
};

}  // namespace hone
