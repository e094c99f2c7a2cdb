// The same loop, of the largest element. There is no atomicMax of floats, so it is made of atomicCAS: whoever finds
// that another block was faster tries again with what that block wrote. *out must be a NaN before (bytes of 0xff):
// fmaxf() gives its other argument then. A maximum has the same bits in every order.
#include "row_block.cuh"

__device__ inline void atomic_max(float* address, float value) {
  auto* const bits = reinterpret_cast<unsigned*>(address);
  unsigned expected = 0xffffffffu, found = expected;
  do {
    expected = found;
    found = atomicCAS(bits, expected, __float_as_uint(fmaxf(value, __uint_as_float(expected))));
  } while (found != expected);
}

extern "C" __global__ void __launch_bounds__(kThreads) cas_max(const float* in, unsigned n, float* out) {
  float most = negative_infinity();
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) most = fmaxf(most, in[i]);
  most = reduce_block(Larger{}, most, negative_infinity());
  if (threadIdx.x == 0) atomic_max(out, most);
}
