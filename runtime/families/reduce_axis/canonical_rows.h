// CanonicalRows: policies of reduce_rows with reproducible numerics (canonical_row_*.cuh).
#pragma once

#include <cstddef>
#include <span>

#include <hone/kernel_family.h>

#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/reduce_axis/axis_family.h"

namespace hone {

/// A policy on a problem. `unroll` counts packs of a row where lanes have it all in flight, else chunks of a warp.
struct CanonicalRows : RowsPolicy {
  const Problem& problem;
  AxisLayout axis = AxisLayout::of_rows(problem);
  bool reads_shifted = !is_aligned(problem) && !is_by_chunk(problem);  ///< lanes have aligned packs all the same
  std::int64_t pack = is_aligned(problem) || reads_shifted ? kMaxAlignment / element_bytes(problem) : 1;  ///< elements
  std::int64_t at_once = std::int64_t{threads_per_row} * unroll * pack;  ///< elements of a row, by lanes
  std::int64_t chunk = kChunkBytes / element_bytes(problem);
  bool is_by_lanes = is_direct_warp() && at_once <= chunk && last_of(problem, 1) <= at_once;
  std::int64_t block_bytes = block_threads * unroll * kLaneChunkBytes;  ///< in flight, but by lanes

  CanonicalRows(const Problem& of, const Policy& policy) : RowsPolicy(policy.as<RowsPolicy>()), problem(of) {}

  /// Staged rows are in tiles of this kind (canonical_row_tiles.cuh).
  StagedTile staged_tile() const { return {problem, block_threads, threads_per_row, unroll}; }

  Reason is_valid(const DeviceFacts& facts) const;
  Unit unit() const;
  WorkShape shape() const;
  std::size_t workspace_bytes(std::int64_t max_blocks) const;
  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const;

  static Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts);

 private:
  Reason tiles_are_valid() const;
  Spans spans() const;
};

}  // namespace hone
