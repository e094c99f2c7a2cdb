// SoftmaxColumnPolicy: the policies of the softmax over columns.
#pragma once

#include <cstdint>

#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The policies of the softmax over columns. A grid cuts columns into chunks that are read twice.
struct SoftmaxColumnPolicy {
  Scope scope = Scope::block;  ///< of a tile of columns
  std::int32_t cluster_blocks = 1;
  std::int32_t lanes = 32;  ///< threads side by side, a pack of columns each
  std::int32_t block_threads = 256;
  std::int32_t packs_per_thread = 1;  ///< rows that a thread holds; of chunks, loads at once
  Staging staging = Staging::direct;  ///< direct: packs that are aligned in every row
  MinBlocks min_blocks = MinBlocks::unset;

  bool in_chunks() const { return scope == Scope::grid; }
  /// However many chunks a member has, its partial results are within SoftmaxTraits::most_partials().
  std::size_t workspace_bytes(std::int64_t) const { return in_chunks() ? kWorkspaceBytes : 0; }
  /// Threads that share a column.
  std::int64_t row_lanes() const { return std::int64_t{block_threads / lanes} * cluster_blocks; }

  static const ParameterSpace& space();
};

}  // namespace hone
