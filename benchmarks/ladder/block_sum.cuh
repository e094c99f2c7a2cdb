// The common part of the ladder's upper steps: the block size, and a sum over the block by warp shuffles.
#pragma once

constexpr unsigned kThreads = 256;
constexpr unsigned kWarpThreads = 32;
constexpr unsigned kWarps = kThreads / kWarpThreads;
constexpr unsigned kFullMask = 0xffffffffu;

/// The sum over the warp, valid in lane 0. Every lane must call it: a mask that names absent lanes is undefined.
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (unsigned offset = kWarpThreads / 2; offset > 0; offset /= 2) value += __shfl_down_sync(kFullMask, value, offset);
  return value;
}

/// The sum over the block, valid in thread 0. Every thread must call it, and only once.
__device__ inline float block_sum(float value) {
  __shared__ float of_warp[kWarps];
  const unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  value = warp_sum(value);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  // Idle lanes bring the identity, rather than staying away.
  return warp == 0 ? warp_sum(lane < kWarps ? of_warp[lane] : 0.0f) : 0.0f;
}
