// The same, and the block sums meet in an atomic instead of another launch: what tutorials blame atomics for is the
// queue of one addition per 256 elements at one address. *out must be 0 before.
#include "block_sum.cuh"

extern "C" __global__ void __launch_bounds__(kThreads) shuffle_atomic(const float* in, unsigned n, float* out) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  const float sum = block_sum(i < n ? in[i] : 0.0f);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}
