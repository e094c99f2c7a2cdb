// States in memory, of the warps or threads of a block or of the blocks of a grid, that few threads combine.
#pragma once

#include "grid.cuh"
#include "lanes.cuh"

namespace hone {

/// True if combining two States takes a few instructions (Reduction::kCombinesFast).
template <class Op>
inline constexpr bool kCombinesFast = requires { requires Op::kCombinesFast; };

/// True if one instruction combines the States of a warp.
template <class Op>
inline constexpr bool kByInstruction = kHasWarpInstructions && Op::kWarpInstruction != WarpInstruction::none;

/// True if each lane combines up to kMostFolded States itself: about 30 cycles, where three shuffles take 80.
template <class Op>
inline constexpr bool kFoldsWarps = kCombinesFast<Op> && !kByInstruction<Op>;
inline constexpr unsigned kMostFolded = 8;

/// True if the tree of States begins with neighbours, as that of CanonicalCombine, and not with halves.
template <class Op>
inline constexpr bool kNeighboursFirst = requires { requires Op::kNeighboursFirst; };

/// Combines the kCount States, a power of two, that lane `part` has of the kCount · kParts of kParts lanes, in the order
/// in which lanes combine one each: in_all_lanes<kParts>() does the rest.
template <class Op, unsigned kCount, unsigned kParts>
__device__ typename Op::State fold_some(const typename Op::State* states, unsigned part) {
  constexpr bool kNext = kNeighboursFirst<Op>;
  Array<typename Op::State, kCount> some(
      [&](unsigned i) { return states[kNext ? part * kCount + i : part + i * kParts]; });
#pragma unroll
  for (unsigned half = kCount / 2; half > 0; half /= 2)
#pragma unroll
    for (unsigned i = 0; i < half; ++i)
      some.values[i] = kNext ? Op::combine(some.values[2 * i], some.values[2 * i + 1])
                             : Op::combine(some.values[i], some.values[i + half]);
  return some.values[0];
}

/// The partials that a thread loads before it combines any: usually all of its own, in one trip to L2.
template <class State>
inline constexpr unsigned kPartialsAtOnce = sizeof(State) <= 8 ? 4 : 2;

/// Combines every step-th of `count` partials that other blocks have published, `stride` apart, from `first` on.
template <class Op>
__device__ typename Op::State combine_published(const typename Op::State* partials, unsigned first, unsigned count,
                                                unsigned step, unsigned stride = 1, const Op& op = {}) {
  using State = typename Op::State;
  constexpr unsigned kAtOnce = kPartialsAtOnce<State>;
  State state = op.identity();
  for (unsigned i = first; i < count; i += kAtOnce * step) {
    State some[kAtOnce];
    unrolled<kAtOnce>([&](unsigned p) {
      if (i + p * step < count) some[p] = load_from_l2(partials + (i + p * step) * stride);
    });
    unrolled<kAtOnce>([&](unsigned p) {
      if (i + p * step < count) state = op.combine(state, some[p]);
    });
  }
  return state;
}

/// The number of chains in which a block of `threads` combines the `threads_per_output` States of each of `outputs`
/// outputs: a power of two, about the square root of the States. Few States are a single chain.
__device__ constexpr unsigned combine_chains(unsigned threads_per_output, unsigned outputs, unsigned threads) {
  unsigned chains = 1;
  while (threads_per_output >= 16 && 4 * chains * chains <= threads_per_output && 2 * chains * outputs <= threads)
    chains *= 2;
  return chains;
}

/// Combines states[s · kOutputs + o] over all s < kThreadsPerOutput, for each output o < outputs: in two short steps
/// instead of one long chain, if there are enough threads. Every thread of the block must construct it, after a
/// barrier; the second step is done by the threads that call combined().
template <class Op, unsigned kBlockThreads, unsigned kThreadsPerOutput, unsigned kOutputs>
struct SmemCombine {
  using State = typename Op::State;
  static constexpr unsigned kChains = combine_chains(kThreadsPerOutput, kOutputs, kBlockThreads);
  State* states;

  __device__ SmemCombine(State* states_, unsigned outputs) : states(states_) {
    if constexpr (kChains > 1) {
      constexpr unsigned kStride = kChains * kOutputs;
      if (threadIdx.x < kStride && threadIdx.x % kOutputs < outputs)
        states[threadIdx.x] = Op::of_states(states + threadIdx.x, kThreadsPerOutput / kChains, kStride);
      __syncthreads();
    }
  }

  __device__ State combined(unsigned output) const {
    return Op::of_states(states + output, kChains > 1 ? kChains : kThreadsPerOutput, kOutputs);
  }
};

}  // namespace hone
