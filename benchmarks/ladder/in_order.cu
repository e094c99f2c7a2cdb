// Neighbouring lanes read neighbouring elements: a warp's load is four sectors of 32 bytes, all of them used.
#include "access.cuh"

struct InOrder {
  __device__ unsigned operator()(unsigned i, unsigned) const { return i; }
};

extern "C" __global__ void __launch_bounds__(kThreads) in_order(const float* in, float* out, unsigned n) {
  copy_in_order_of(InOrder(), in, out, n);
}
