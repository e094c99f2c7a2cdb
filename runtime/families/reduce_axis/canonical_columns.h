// CanonicalColumns: policies of reduce_columns with reproducible numerics (canonical_columns.cuh).
#pragma once

#include <cstddef>
#include <span>

#include <hone/kernel_family.h>

#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/reduce_axis/columns_layout.h"

namespace hone {

/// A policy on a problem. Rows are folded in powers of two.
struct CanonicalColumns : ColumnsLayout {
  std::int64_t chunk = kChunkBytes / element;  ///< elements of a column
  std::int64_t batch_levels, levels;           ///< kBatchLevels and kLevels, for the whole size class

  CanonicalColumns(const Problem& of, const Policy& policy);

  std::int64_t chunks() const { return at_least_one(divide_up(axis.reduced, chunk)); }
  /// True if blocks may take parts of a chunk, in the whole size class.
  bool cuts_chunks() const;
  /// The smallest part of a chunk is every 2^most_cut_levels()-th row, at least as many as the threads load at once.
  int most_cut_levels() const;
  std::int64_t accumulator_bytes() const {
    return static_cast<std::int64_t>(info(reduce_spec_of(problem).accumulator_dtype()).size_bytes);
  }
  /// True if a chunk stays in the registers of a block.
  bool holds_chunks() const { return is_by_chunk(problem) && batch_levels == 0; }
  std::int64_t smem_bytes() const;

  Reason is_valid(const DeviceFacts& facts) const;
  Unit unit() const;
  WorkShape shape() const;
  std::size_t workspace_bytes(std::int64_t max_blocks) const;
  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const;

  static Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts);

 private:
  /// kLeft of ColumnThreads, for operations by chunk.
  std::int64_t rows_of_states() const;
  Spans spans(std::int64_t max_blocks) const;
};

}  // namespace hone
