// The arguments of the kernels of softmax.cuh, softmax_tiles.cuh, canonical_softmax.cuh, softmax_columns.cuh and
// canonical_softmax_columns.cuh, as host and device see them. Acc is the type that weights are computed in.
#pragma once

namespace hone {

/// The weight of an element x is exp(scale · x).
template <class Acc>
struct SoftmaxFactors {
  Acc factor;    ///< 2 · scale
  Acc exponent;  ///< 2 · scale · log2 e
};

/// Softmax of rows.
template <class Acc>
struct SoftmaxArguments {
  const void* in;
  void* out;
  void* workspace;
  unsigned long long rows, columns;
  long long in_pitch, out_pitch;  ///< in elements
  SoftmaxFactors<Acc> scale;
  unsigned chunks;            ///< blocks per row; of canonical_softmax.cuh: chunks that a block holds; of row_held.cuh:
                              ///< chunks of a block's part of a row
  unsigned packs_per_thread;  ///< in shared memory
  unsigned lag;               ///< of row_pipeline.cuh, in rows; of row_held.cuh: chunks in flight
  unsigned run_levels = 0;    ///< a warp holds 2^run_levels chunks; of canonical_softmax_rows.cuh: as in ReduceArguments;
                              ///< of canonical_held_order.cuh: a State is that of so many chunks of the tree
  unsigned slots = 0;         ///< of row_held.cuh: places of a ring
  unsigned slot_packs = 0;    ///< packs of each
  unsigned part_packs = 0;    ///< of a row that a block holds
  unsigned held_chunks = 0;   ///< chunks of a part that are held; most others are read twice
  unsigned passing_slots = 0; ///< places, behind those of the ring, that they pass through
};

/// Softmax over the middle extent.
template <class Acc>
struct SoftmaxColumnsArguments {
  const void* in;
  void* out;
  void* workspace;
  long long outer, reduced, inner;
  long long in_pitch, out_pitch;  ///< in elements, from one row of `inner` elements to the next
  SoftmaxFactors<Acc> scale;
  unsigned chunks;  ///< blocks per tile; of canonical_softmax_columns.cuh: spans
  unsigned run_levels = 0;  ///< of canonical_softmax_columns.cuh: a span has 2^run_levels chunks
};

}  // namespace hone
