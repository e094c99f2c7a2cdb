// The same tree in shared memory: the input is read once, and nothing but block sums is written back.
#include "block_sum.cuh"

extern "C" __global__ void __launch_bounds__(kThreads) shared_tree(const float* in, unsigned n, float* out) {
  __shared__ float tree[kThreads];
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  tree[threadIdx.x] = i < n ? in[i] : 0.0f;
  for (unsigned active = kThreads / 2; active > 0; active /= 2) {
    __syncthreads();
    if (threadIdx.x < active) tree[threadIdx.x] += tree[threadIdx.x + active];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = tree[0];
}
