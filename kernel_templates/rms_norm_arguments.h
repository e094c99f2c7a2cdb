// The arguments of the kernels of rms_norm.cuh, rms_norm_shared.cuh, rms_norm_chunks.cuh and rms_norm_held.cuh, as host
// and device see them.
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
  unsigned chunks;        ///< blocks per row; of row_held.cuh: chunks of a block's part of a row
  unsigned lag;           ///< of row_pipeline.cuh, in rows; of row_held.cuh: chunks in flight
  unsigned slots;         ///< of row_held.cuh: places of a ring
  unsigned slot_packs;    ///< packs of each
  unsigned part_packs;    ///< of a row that a block holds
  unsigned held_chunks;   ///< chunks of a part that are held; most others are read twice
  unsigned passing_slots; ///< places, behind those of the ring, that they pass through
  void* workspace;        ///< of rms_norm_chunks.cuh and row_held.cuh
};

}  // namespace hone
