// The reference for operations that only their own source can tell: one block that takes every element by itself. No
// packs, no tiles, no shuffles, no second block: nothing of what it is compared with but the operation.
#pragma once

namespace hone {

inline constexpr unsigned kSerialThreads = 1024;
inline constexpr unsigned kSerialRun = 256;  ///< elements that a thread combines before it adds them to what it has

template <class Op, class Out>
__device__ void serial_reduce(const typename Op::In* in, typename Op::Index n, Out* out) {
  using Index = typename Op::Index;
  using State = typename Op::State;
  __shared__ State of_thread[kSerialThreads];
  State state = Op::identity();
  Index i = threadIdx.x;
  while (i < n) {
    State run = Op::identity();
    for (unsigned taken = 0; taken < kSerialRun && i < n; ++taken, i += kSerialThreads)
      run = Op::combine(run, Op::of(in[i], i));
    state = Op::combine(state, run);
  }
  of_thread[threadIdx.x] = state;
  for (unsigned half = kSerialThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) of_thread[threadIdx.x] = Op::combine(of_thread[threadIdx.x], of_thread[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) Op::write(of_thread[0], n, out);
}

}  // namespace hone
