// ShardLayout: what a rank contributes to a canonical tree over ranks, and where it lies in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <hone/reduce_spec.h>
#include <hone/softmax_spec.h>

namespace hone {

/// The operation behind those of ReduceOp: the sum of a softmax's weights relative to the largest element of the row.
inline constexpr auto kSoftmaxWeights = static_cast<std::uint8_t>(kReduceOps.size());

/// Bounds on what any rank has to send: nodes of `levels` levels, and elements of chunks that ranks share.
struct ShardBounds {
  int levels = 32;
  bool has_edges = true;

  /// For ranks with these numbers of elements of each row.
  static ShardBounds of(DType dtype, std::span<const std::int64_t> columns);
};

/// A block for each rank: nodes[rows · 2 · levels], then edges[rows · 2 · chunk] (shard_arguments.h).
struct ShardLayout {
  std::int64_t chunk = 0;  ///< elements
  std::int64_t state_bytes = 0, edge_bytes = 0;
  bool edges_are_leaves = false;  ///< what the operation makes of elements, as accumulators
  int levels = 32;
  std::int64_t edges_at = 0;     ///< bytes from the beginning of a block
  std::int64_t block_bytes = 0;  ///< a multiple of 16

  /// The layout for a problem of either family below.
  static ShardLayout of(const Problem& problem);
};

/// From the number of a rank's elements to that of the next, in the array of all.
inline constexpr std::int64_t kCountBytes = 16;

/// The reduction of a problem of either family: its softmax weights are summed.
ReduceSpec shard_spec_of(const Problem& problem);

/// The family that reduces a rank's part of rows to nodes of their canonical trees. Its extents are {rows, columns, 1},
/// its buffers {in, counts, block}; {a, b, counts, block} for dot; {in, counts, origins[rows], block} for softmax
/// weights. The counts are those of all ranks, kCountBytes apart.
const KernelFamily& reduce_shard_family();
Problem reduce_shard_problem(const ReduceSpec& spec, const RowsShape& shape, int rank, const ShardBounds& bounds,
                             std::uint32_t alignment = kMaxAlignment);
/// Its result dtype is that of the softmax, for which weights are as exact as they need to be.
Problem softmax_shard_problem(const SoftmaxSpec& spec, const RowsShape& shape, int rank, const ShardBounds& bounds);

/// The family that makes results of the blocks of all ranks. Its extents are {ranks, rows, 1}, its buffers
/// {blocks[ranks · block_bytes], counts, out[rows · outputs]}.
const KernelFamily& combine_shards_family();
Problem combine_shards_problem(const ReduceSpec& spec, std::int64_t ranks, std::int64_t rows,
                               const ShardBounds& bounds);
Problem combine_softmax_shards_problem(const SoftmaxSpec& spec, std::int64_t ranks, std::int64_t rows,
                                       const ShardBounds& bounds);

/// Problem::scalars of the two: the rank, the bounds, and twice the scale of a softmax.
enum ShardScalar : std::uint8_t { kRankScalar, kLevelsScalar, kEdgesScalar, kFactorScalar };
inline std::vector<std::string_view> shard_scalar_names() { return {"rank", "levels", "edges", "factor"}; }

}  // namespace hone
