// The reference for custom operations, which are defined only by their source: one block, one element at a time. It
// uses no packs, tiles, shuffles or second block, so it shares only the operation with the kernels that it checks.
//
// Three more orders of combination show whether the operation is associative and commutative: the mirrored order, and
// a single thread that folds from the left or from the right.
#pragma once

#include "grid.cuh"
#include "reduce_arguments.h"

namespace hone {

inline constexpr unsigned kSerialThreads = 1024;
inline constexpr unsigned kSerialRun = 256;  ///< elements that a thread combines before it adds them to its accumulator

/// kMirrored: from the last element to the first, with the operands of each combination exchanged.
template <class Op, class Out, bool kMirrored>
__device__ void serial_reduce(const ReduceArguments& arguments) {
  using Index = typename Op::Index;
  using State = typename Op::State;
  const auto* const in = static_cast<const typename Op::In*>(arguments.in[0]);
  const auto n = static_cast<Index>(arguments.n);
  __shared__ State of_thread[kSerialThreads];
  const auto combine = [](State a, State b) { return kMirrored ? Op::combine(b, a) : Op::combine(a, b); };
  State state = Op::identity();
  Index i = threadIdx.x;
  while (i < n) {
    State run = Op::identity();
    for (unsigned taken = 0; taken < kSerialRun && i < n; ++taken, i += kSerialThreads) {
      const Index at = kMirrored ? n - 1 - i : i;
      run = combine(run, Op::of(in[at], at));
    }
    state = combine(state, run);
  }
  of_thread[threadIdx.x] = state;
  for (unsigned half = kSerialThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) of_thread[threadIdx.x] = combine(of_thread[threadIdx.x], of_thread[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) Op::write(of_thread[0], n, static_cast<Out*>(arguments.out[0]));
}

/// A fold by one thread: ((identity · x₀) · x₁) · … or, from the right, … · (xₙ₋₁ · identity).
template <class Op, class Out, bool kFromTheRight>
__device__ void fold(const ReduceArguments& arguments) {
  using Index = typename Op::Index;
  const auto* const in = static_cast<const typename Op::In*>(arguments.in[0]);
  const auto n = static_cast<Index>(arguments.n);
  typename Op::State state = Op::identity();
  for (Index i = 0; i < n; ++i) {
    const Index at = kFromTheRight ? n - 1 - i : i;
    state = kFromTheRight ? Op::combine(Op::of(in[at], at), state) : Op::combine(state, Op::of(in[at], at));
  }
  Op::write(state, n, static_cast<Out*>(arguments.out[0]));
}

/// Combines n pairs of States both ways: those of in[0] with those of in[1] go to out[0], exchanged ones to out[1].
template <class Op>
__device__ void combine_both_ways(const ReduceArguments& arguments) {
  using State = typename Op::State;
  const auto* const a = static_cast<const State*>(arguments.in[0]);
  const auto* const b = static_cast<const State*>(arguments.in[1]);
  for (unsigned long long i = threadIdx.x; i < arguments.n; i += kSerialThreads) {
    static_cast<State*>(arguments.out[0])[i] = Op::combine(a[i], b[i]);
    static_cast<State*>(arguments.out[1])[i] = Op::combine(b[i], a[i]);
  }
}

}  // namespace hone
