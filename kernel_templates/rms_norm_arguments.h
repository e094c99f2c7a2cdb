// The arguments of the kernels of rms_norm.cuh, as host and device see them.
#pragma once

namespace hone {

struct RmsNormArguments {
  const void* x;
  const void* residual;
  const void* weight;
  void* y;
  void* h;
  unsigned long long rows, columns;
  long long in_pitch, out_pitch;  ///< in elements: of x and residual; of y and h
  float mean_factor;              ///< 1 / columns
  float eps;
  unsigned shared_packs;  ///< of a thread, in shared memory
};

}  // namespace hone
