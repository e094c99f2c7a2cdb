// One launch: each block leaves its sum and takes a ticket; who has the last one adds up all sums.
//
// The fence before the ticket publishes the sum, the one after it makes the others' sums visible; they are read through
// L2 (__ldcg), since this multiprocessor's L1 may be stale. atomicInc wraps to 0 after the last block: the ticket is
// ready for the next launch.
#include "vector_sum.cuh"

/// block_sum() a second time needs a barrier and a buffer of its own.
__device__ inline float sum_of(const float* sums, unsigned count) {
  __shared__ float of_warp[kWarps];
  float sum = 0;
  for (unsigned i = threadIdx.x; i < count; i += kThreads) sum += __ldcg(sums + i);
  sum = warp_sum(sum);
  if (threadIdx.x % kWarpThreads == 0) of_warp[threadIdx.x / kWarpThreads] = sum;
  __syncthreads();
  return threadIdx.x < kWarpThreads ? warp_sum(threadIdx.x < kWarps ? of_warp[threadIdx.x] : 0.0f) : 0.0f;
}

extern "C" __global__ void __launch_bounds__(kThreads) last_block(const float* in, unsigned n, float* sums,
                                                                  unsigned* ticket, float* out) {
  __shared__ bool is_last;
  const float sum = block_sum(thread_sum(in, n));
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  const float total = sum_of(sums, gridDim.x);
  if (threadIdx.x == 0) *out = total;
}
