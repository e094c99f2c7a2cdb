// A tree in global memory: each block adds up kThreads elements of a copy of the input, halving the number of active
// threads with a barrier per level. The block sums are added up by the next launch, until one is left.
//
// Every level goes through memory: the copy is written once, then read and written again and again.
#include "block_sum.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    global_tree(const float* in, unsigned n, float* out, float* tree) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  tree[i] = i < n ? in[i] : 0.0f;
  for (unsigned active = kThreads / 2; active > 0; active /= 2) {
    __syncthreads();
    if (threadIdx.x < active) tree[i] += tree[i + active];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = tree[i];
}
