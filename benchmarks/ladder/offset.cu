// Everybody reads the element behind his own: a warp's load touches a fifth sector, which its neighbour needs, too, and
// mostly finds in a cache. The last element goes around to the first.
#include "access.cuh"

struct Offset {
  __device__ unsigned operator()(unsigned i, unsigned n) const { return i + 1 < n ? i + 1 : 0; }
};

extern "C" __global__ void __launch_bounds__(kThreads) offset(const float* in, float* out, unsigned n) {
  copy_in_order_of(Offset(), in, out, n);
}
