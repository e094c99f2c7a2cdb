// As many shuffles, written with cooperative groups: a tile of 32 threads is a group, and reduce() adds up its values.
// The groups know who takes part, so that no mask and no lane number is written by hand. The headers are CUDA's own:
// NVRTC has to be told where they are, and the host device has none.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "block_sum.cuh"

namespace groups = cooperative_groups;

extern "C" __global__ void __launch_bounds__(kThreads) group_reduce(const float* in, unsigned n, float* out) {
  __shared__ float of_warp[kWarps];
  const groups::thread_block block = groups::this_thread_block();
  const auto warp = groups::tiled_partition<kWarpThreads>(block);
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  float sum = groups::reduce(warp, i < n ? in[i] : 0.0f, groups::plus<float>());
  if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = sum;
  block.sync();
  if (warp.meta_group_rank() > 0) return;
  const unsigned lane = warp.thread_rank();
  sum = groups::reduce(warp, lane < kWarps ? of_warp[lane] : 0.0f, groups::plus<float>());
  if (lane == 0) out[blockIdx.x] = sum;
}
