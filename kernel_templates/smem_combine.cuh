// SmemCombine: combines in shared memory the States of the threads that share an output, for many outputs side by side.
//
// The order of combination depends only on the numbers of threads and outputs.
#pragma once

namespace hone {

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
