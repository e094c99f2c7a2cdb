// Shared by the steps of the softmax ladder: a block takes a row of floats, and all its threads learn what is reduced.
#pragma once

constexpr unsigned kThreads = 256;
constexpr unsigned kWarpThreads = 32;
constexpr unsigned kFullMask = 0xffffffffu;

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// The reduction over the block, valid in all threads. May be called again at once. Lanes without a value bring the
/// identity: of a maximum that is −∞. FLT_MIN, which some tutorials take, is the smallest positive float.
template <class Op>
__device__ float reduce_block(Op op, float value, float identity) {
  __shared__ float of_warp[kThreads / kWarpThreads];
  const unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  for (unsigned offset = kWarpThreads / 2; offset > 0; offset /= 2)
    value = op(value, __shfl_xor_sync(kFullMask, value, offset));
  __syncthreads();  // a call before may still be read
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = lane < kThreads / kWarpThreads ? of_warp[lane] : identity;
  for (unsigned offset = kWarpThreads / 2; offset > 0; offset /= 2)
    value = op(value, __shfl_xor_sync(kFullMask, value, offset));
  return value;
}

__device__ inline float negative_infinity() { return __int_as_float(0xff800000); }
