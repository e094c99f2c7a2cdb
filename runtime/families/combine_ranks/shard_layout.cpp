#include "runtime/families/combine_ranks/shard_layout.h"

#include <algorithm>
#include <bit>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/canonical_tree.h"
#include "runtime/families/reduce/reduction_family.h"
#include "runtime/families/softmax/softmax_base.h"

namespace hone {
namespace {

ReduceSpec sum_of_weights(const SoftmaxSpec& spec) {
  return {.op = ReduceOp::sum,
          .dtype = spec.dtype,
          .accumulator = spec.accumulator_dtype(),
          .result = spec.accumulator_dtype(),
          .numerics = Numerics::reproducible};
}

void set_bounds(Problem& problem, const ShardBounds& bounds) {
  problem.scalars[kLevelsScalar] = bounds.levels;
  problem.scalars[kEdgesScalar] = bounds.has_edges ? 1 : 0;
}

}  // namespace

ShardBounds ShardBounds::of(DType dtype, std::span<const std::int64_t> columns) {
  ShardBounds bounds{.levels = 0, .has_edges = false};
  const std::int64_t chunk = canonical::chunk_elements(dtype);
  std::int64_t at = 0;
  for (const std::int64_t each : columns) {
    bounds.levels = std::max(bounds.levels, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(each / chunk))));
    at += each;
    if (at % chunk != 0) bounds.has_edges = true;
  }
  return bounds;
}

ShardLayout ShardLayout::of(const Problem& problem) {
  const ReduceSpec spec = shard_spec_of(problem);
  const std::int64_t rows = problem.family == &combine_shards_family() ? problem.extents[1] : problem.extents[0];
  ShardLayout layout{.chunk = canonical::chunk_elements(spec.dtype),
                     .state_bytes = static_cast<std::int64_t>(hone::state_bytes(spec, true)),
                     .edges_are_leaves = problem.operation == kSoftmaxWeights || spec.op == ReduceOp::dot,
                     .levels = static_cast<int>(problem.scalars[kLevelsScalar].value_or(ShardBounds{}.levels))};
  layout.edge_bytes = layout.edges_are_leaves ? layout.state_bytes : element_bytes(problem);
  const bool has_edges = problem.scalars[kEdgesScalar].value_or(1) != 0;
  constexpr std::int64_t kAlign = 16;
  layout.edges_at = divide_up(rows * 2 * layout.levels * layout.state_bytes, kAlign) * kAlign;
  layout.block_bytes =
      layout.edges_at + (has_edges ? divide_up(rows * 2 * layout.chunk * layout.edge_bytes, kAlign) * kAlign : 0);
  // Nothing is sent where all ranks are empty, but a block has an address.
  layout.block_bytes = std::max(layout.block_bytes, kAlign);
  return layout;
}

ReduceSpec shard_spec_of(const Problem& problem) {
  Problem of_sum = problem;
  if (problem.operation == kSoftmaxWeights) of_sum.operation = static_cast<std::uint8_t>(ReduceOp::sum);
  return reduce_spec_of(of_sum);
}

Problem reduce_shard_problem(const ReduceSpec& spec, const RowsShape& shape, int rank, const ShardBounds& bounds,
                             std::uint32_t alignment) {
  Problem problem = reduce_problem(spec, 0);
  problem.family = &reduce_shard_family();
  problem.alignment = info(spec.op).inputs == 1 ? kMaxAlignment : alignment;
  problem.extents = {shape.rows, shape.columns, 1};
  problem.pitches = named_pitches({shape.pitch, 0}, shape.columns, shape.columns);
  problem.scalars[kRankScalar] = rank;
  set_bounds(problem, bounds);
  return problem;
}

Problem softmax_shard_problem(const SoftmaxSpec& spec, const RowsShape& shape, int rank, const ShardBounds& bounds) {
  ReduceSpec of_weights = sum_of_weights(spec);
  of_weights.result = spec.result_dtype();
  Problem problem = reduce_shard_problem(of_weights, shape, rank, bounds);
  problem.operation = kSoftmaxWeights;
  problem.scalars[kFactorScalar] = softmax_factor(spec);
  return problem;
}

Problem combine_shards_problem(const ReduceSpec& spec, std::int64_t ranks, std::int64_t rows,
                               const ShardBounds& bounds) {
  Problem problem = reduce_problem(spec, 0);
  problem.family = &combine_shards_family();
  problem.alignment = kMaxAlignment;
  problem.extents = {ranks, rows, 1};
  set_bounds(problem, bounds);
  return problem;
}

Problem combine_softmax_shards_problem(const SoftmaxSpec& spec, std::int64_t ranks, std::int64_t rows,
                                       const ShardBounds& bounds) {
  Problem problem = combine_shards_problem(sum_of_weights(spec), ranks, rows, bounds);
  problem.operation = kSoftmaxWeights;
  return problem;
}

}  // namespace hone
