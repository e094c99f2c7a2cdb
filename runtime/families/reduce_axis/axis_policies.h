// The policies of the families reduce_rows and reduce_columns.
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

/// The policies of reductions over columns. A grid combines the parts of a column in a second kernel. Staged, whole
/// slices of reduced × inner are copied to shared memory; shifted, where rows begin anywhere, threads put each of their
/// packs together from two aligned ones.
struct ColumnsPolicy {
  std::int32_t block_threads = 256;
  std::int32_t threads_per_column = 1;  ///< of a block
  std::int32_t unroll = 2;              ///< packs that a thread loads at once
  Scope scope = Scope::block;           ///< of a column
  Staging staging = Staging::direct;
  MinBlocks min_blocks = MinBlocks::unset;

  /// Threads side by side.
  int lanes() const { return block_threads / threads_per_column; }
  bool is_staged() const { return staging == Staging::shared; }
  bool is_split() const { return scope == Scope::grid; }

  static const ParameterSpace& space();
};

}  // namespace hone
