// The shared tree whose last six levels are one warp's business: no barrier for the whole block, only for the warp.
//
// Lanes of a warp need not run in step (since Volta they do not), so that each level reads, meets, writes and meets
// again; `volatile` instead of __syncwarp(), as in older tutorials, is a race.
#include "block_sum.cuh"

extern "C" __global__ void __launch_bounds__(kThreads) warp_sync(const float* in, unsigned n, float* out) {
  __shared__ float tree[kThreads];
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  tree[threadIdx.x] = i < n ? in[i] : 0.0f;
  for (unsigned active = kThreads / 2; active > kWarpThreads; active /= 2) {
    __syncthreads();
    if (threadIdx.x < active) tree[threadIdx.x] += tree[threadIdx.x + active];
  }
  __syncthreads();
  if (threadIdx.x >= kWarpThreads) return;

  float sum = tree[threadIdx.x];
  for (unsigned offset = kWarpThreads; offset > 0; offset /= 2) {
    sum += tree[threadIdx.x + offset];  // lanes from `offset` on read what nobody needs
    __syncwarp();
    tree[threadIdx.x] = sum;
    __syncwarp();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
