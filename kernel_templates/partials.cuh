// The second kernel of reductions with many outputs: combines the partials that several blocks published per output.
#pragma once

#include "axis_arguments.h"
#include "combine.cuh"

namespace hone {

inline constexpr unsigned kPartsAtOnce = 4;  ///< that a thread loads: usually all of its parts, in one trip to L2

/// Partial p of output o is at [p · outputs + o], so that neighbouring threads load coalesced. A block has kOutputs
/// neighbouring outputs and kBlockThreads ÷ kOutputs threads per output. An output has kValues elements of `out`.
template <class Op, unsigned kBlockThreads, unsigned kOutputs, class Out, unsigned kValues>
__device__ void combine_parts(const PartsArguments& all) {
  using State = typename Op::State;
  constexpr unsigned kThreadsPerOutput = kBlockThreads / kOutputs;
  static_assert(kThreadsPerOutput * kOutputs == kBlockThreads && (kThreadsPerOutput & (kThreadsPerOutput - 1)) == 0);
  __shared__ State of_thread[kBlockThreads];
  pdl_release_then_wait();
  const unsigned output = blockIdx.x * kOutputs + threadIdx.x % kOutputs;
  const unsigned parts = output < all.outputs ? all.parts : 0;
  const State* const partials = partials_in<State>(const_cast<void*>(all.workspace)) + output;
  State state = Op::identity();
  for (unsigned first = threadIdx.x / kOutputs; first < parts; first += kPartsAtOnce * kThreadsPerOutput) {
    const Array<State, kPartsAtOnce> some([&](unsigned i) {
      const unsigned part = first + i * kThreadsPerOutput;
      return part < parts ? load_from_l2(partials + part * all.outputs) : Op::identity();
    });
    state = Op::combine(state, Op::of_states(some.values, kPartsAtOnce, 1));
  }
  of_thread[threadIdx.x] = state;
  __syncthreads();
  const SmemCombine<Op, kBlockThreads, kThreadsPerOutput, kOutputs> smem(of_thread, kOutputs);
  if (threadIdx.x < kOutputs && output < all.outputs)
    Op::write(smem.combined(threadIdx.x), static_cast<typename Op::Index>(all.reduced),
              static_cast<Out*>(all.out) + static_cast<unsigned long long>(output) * kValues);
}

}  // namespace hone
