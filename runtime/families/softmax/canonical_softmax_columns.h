// CanonicalSoftmaxColumns: policies of the softmax over columns with reproducible numerics
// (canonical_softmax_columns.cuh).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hone/kernel_family.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/softmax/softmax_column_policy.h"

namespace hone {

/// A policy on a problem. packs_per_thread counts the rows that a thread loads at once.
struct CanonicalSoftmaxColumns : SoftmaxColumnPolicy {
  const Problem& problem;
  SoftmaxTraits traits{problem};
  std::int64_t outer = problem.extents[0], reduced = problem.extents[1], inner = problem.extents[2];
  std::int64_t pack = SoftmaxBase::pack_elements(problem);  ///< elements
  std::int64_t chunk = kChunkBytes / traits.in_bytes;       ///< elements of a column
  std::int64_t columns = lanes * pack;                      ///< of a tile
  std::int64_t tile_rows = row_lanes() * packs_per_thread;  ///< that a block loads at once
  std::int64_t most = at_least_one(last_of(problem, 1));  ///< rows of the class
  std::int64_t batch_levels, levels;                        ///< kBatchLevels and kLevels, for the whole class

  CanonicalSoftmaxColumns(const Problem& of, const Policy& policy);

  std::int64_t chunks() const { return at_least_one(divide_up(reduced, chunk)); }
  std::int64_t tiles() const { return at_least_one(outer * divide_up(inner, columns)); }
  bool is_held() const { return batch_levels == 0 && levels == 0; }
  std::int64_t accumulator_bytes() const { return static_cast<std::int64_t>(info(traits.accumulator).size_bytes); }
  std::int64_t smem_bytes() const;

  Reason is_valid(const DeviceFacts& facts) const;
  Unit unit() const;
  WorkShape shape() const;
  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const;

  static Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts);

 private:
  Spans spans(std::int64_t max_blocks) const;
};

}  // namespace hone
