// PartialLayout: what a rank contributes to a reduction over ranks, and where it lies in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <hone/reduce_spec.h>

namespace hone {

/// How an operation is divided: each rank does `local` on its shard; `combine` is the functor of rank_partials.cuh that
/// makes the result of the partials.
struct DividedOp {
  ReduceOp local;
  std::string_view combine;
};
const DividedOp& divided(ReduceOp op);

/// The reduction of one rank's shard. Its result has the accumulator's dtype, so that nothing is rounded twice.
ReduceSpec partial_spec(const ReduceSpec& spec);

/// The most ranks whose partials are combined, and what is wrong with so many ("" if nothing is).
inline constexpr std::int64_t kMostRanks = 1 << 20;
std::string ranks_fault(std::int64_t ranks);

/// A block for each rank: values[rows · values_per_row], then indices[rows] if `has_index`, then one count of elements.
struct PartialLayout {
  DType value = DType::f32;
  int values_per_row = 1;
  bool has_index = false;  ///< argmin and argmax
  bool has_count = false;  ///< those and means
  std::int64_t index_at = 0, count_at = 0;  ///< bytes from the beginning of a block
  std::int64_t block_bytes = 0;             ///< a multiple of 16

  static PartialLayout of(const ReduceSpec& spec, std::int64_t rows);
};

/// The family that combines the partials of all ranks. Its extents are {ranks, rows, 1}, its operations those of
/// ReduceOp, its buffers {partials[ranks · block_bytes], out[rows · outputs]}.
const KernelFamily& combine_ranks_family();
Problem combine_ranks_problem(const ReduceSpec& spec, std::int64_t ranks, std::int64_t rows);

/// The family that adds counts, indices and elements to a rank's block. Its extents are {rows, 1, 1}, its first scalar
/// the number of columns. Its operations are `count`, with the buffers {count}, and `locate`, with {in, found[rows],
/// values[rows], indices[rows], count}.
const KernelFamily& record_partial_family();
Problem record_partial_problem(const ReduceSpec& spec, const RowsShape& shape);

}  // namespace hone
