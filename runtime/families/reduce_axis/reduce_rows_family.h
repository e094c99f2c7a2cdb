// The policies of the reduce_rows family.
#pragma once

#include "runtime/families/work_division.h"

namespace hone {

/// The policies of reductions over rows. A grid combines the parts of a row in a second kernel.
struct RowsPolicy {
  std::int32_t block_threads = 256;
  Scope scope = Scope::block;        ///< of a row
  std::int32_t threads_per_row = 0;  ///< of a warp; 0: more than a warp
  Staging staging = Staging::direct;
  std::int32_t unroll = 1;           ///< packs that a thread loads at once, of each row
  std::int32_t rows_per_thread = 1;  ///< that a thread takes at once
  std::int32_t cluster_blocks = 1;
  Tail tail = Tail::warp;            ///< of a block
  MinBlocks min_blocks = MinBlocks::one;

  bool is_staged() const { return staging == Staging::shared; }
  /// Rows that a block takes at once, where lanes of a warp make an output.
  std::int64_t tile_rows() const { return block_threads / threads_per_row * rows_per_thread; }
  bool is_direct_warp() const { return scope == Scope::warp && !is_staged(); }

  static const ParameterSpace& space();
};

}  // namespace hone
