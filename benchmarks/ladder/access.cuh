// Shared by the steps of the access ladder: each copies n floats, a thread for each, in an order of its own.
#pragma once

constexpr unsigned kThreads = 256;
constexpr unsigned kWarpThreads = 32;

template <class Order>
__device__ void copy_in_order_of(Order order, const float* in, float* out, unsigned n) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i < n) out[i] = in[order(i, n)];
}
