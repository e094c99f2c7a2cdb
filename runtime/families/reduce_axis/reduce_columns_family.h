// The policies of the reduce_columns family.
#pragma once

#include "runtime/families/work_division.h"

namespace hone {

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
