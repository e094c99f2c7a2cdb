// SegmentedPolicy: the policies of segmented reductions.
#pragma once

#include "runtime/families/work_division.h"

namespace hone {

/// In the words of segmented_reduce.cuh: a grid divides segments and elements
/// evenly (MergedSegments); 1, 4 or 16 lanes take a segment from a tile in shared memory (StagedSegments); a warp or a
/// block takes a segment (DirectSegments).
struct SegmentedPolicy {
  Scope scope = Scope::grid;              ///< of a segment
  Combine combine = Combine::last_block;  ///< of a grid
  std::int32_t threads_per_segment = 0;   ///< of a warp; 0: more than a warp
  std::int32_t block_threads = 256;
  std::int32_t thread_bytes = 16;  ///< that a thread loads at once
  MinBlocks min_blocks = MinBlocks::unset;

  bool is_merged() const { return scope == Scope::grid; }
  bool is_in_tiles() const { return scope == Scope::warp && threads_per_segment < 32; }
  bool joins_in_second_kernel() const { return is_merged() && combine == Combine::second_kernel; }

  /// Threads that take a segment together; of MergedSegments, all of the block.
  int group_threads() const { return scope == Scope::warp ? threads_per_segment : block_threads; }

  static const ParameterSpace& space();
};

}  // namespace hone
