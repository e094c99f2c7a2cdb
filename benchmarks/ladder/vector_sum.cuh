// The sum of a thread in the steps from vector_loads on.
#pragma once

#include "block_sum.cuh"

constexpr unsigned kUnroll = 4;

/// Four 16-byte loads in flight before the first of them is used: enough bytes on their way to keep memory busy. `in`
/// must be aligned to 16 bytes; the last n % 4 elements go to single threads of block 0.
__device__ inline float thread_sum(const float* in, unsigned n) {
  const float4* const packs = reinterpret_cast<const float4*>(in);
  const unsigned count = n / 4, stride = gridDim.x * kThreads * kUnroll;
  float sum = 0;
  unsigned i = blockIdx.x * kThreads * kUnroll + threadIdx.x;
  for (; i + (kUnroll - 1) * kThreads < count; i += stride) {
    float4 loaded[kUnroll];
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) loaded[u] = packs[i + u * kThreads];
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) sum += (loaded[u].x + loaded[u].y) + (loaded[u].z + loaded[u].w);
  }
  for (; i < count; i += kThreads) {  // the last tile, cut short
    const float4 pack = packs[i];
    sum += (pack.x + pack.y) + (pack.z + pack.w);
  }
  if (blockIdx.x == 0 && threadIdx.x < n % 4) sum += in[4 * count + threadIdx.x];
  return sum;
}
