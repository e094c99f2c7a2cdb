// A grid-stride loop: no more blocks than are resident at once, each thread adds up many elements in a register, and
// there is one block sum per resident block instead of one per kThreads elements. They meet in an atomic: *out must be
// 0 before, and the result differs from run to run.
#include "block_sum.cuh"

extern "C" __global__ void __launch_bounds__(kThreads) grid_stride(const float* in, unsigned n, float* out) {
  float sum = 0;
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) sum += in[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}
