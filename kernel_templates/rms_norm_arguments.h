// The arguments of the kernels of rms_norm.cuh, rms_norm_shared.cuh and rms_norm_chunks.cuh, as host and device see
// them.
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
  unsigned chunks;        ///< blocks per row
  unsigned lag;           ///< of row_pipeline.cuh, in rows
  void* workspace;        ///< of rms_norm_chunks.cuh
};

}  // namespace hone
