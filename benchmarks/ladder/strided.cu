// Neighbouring lanes read 32 elements apart: each load is 32 sectors for 128 bytes. All elements are read once all the
// same, so that the bytes that matter are as many; what is left over of n is read in order.
#include "access.cuh"

struct Strided {
  __device__ unsigned operator()(unsigned i, unsigned n) const {
    const unsigned rows = n / kWarpThreads;
    return i < rows * kWarpThreads ? i % rows * kWarpThreads + i / rows : i;
  }
};

extern "C" __global__ void __launch_bounds__(kThreads) strided(const float* in, float* out, unsigned n) {
  copy_in_order_of(Strided(), in, out, n);
}
