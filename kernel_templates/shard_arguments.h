// The arguments of the kernels of canonical_shard.cuh and combine_shards.cuh, as host and device see them.
//
// A rank's block has 2 · levels nodes of each row: one of each level at the left end of its shard, one at the right;
// then, from edges_at on, two chunks of each row for the elements that the shard's ends cut off a chunk.
#pragma once

namespace hone {

/// The counts of neighbouring ranks are so far apart: each is a block of 16 bytes.
inline constexpr unsigned kCountStride = 2;

/// A rank reduces its shard to nodes and edges by these.
struct ShardArguments {
  const void* in[2];        ///< rows of `columns` elements, or two arrays
  const long long* counts;  ///< columns of all ranks
  const void* origins;      ///< of softmax: the largest element of each row
  void* block;
  void* workspace;
  unsigned long long rows, columns, pitch;  ///< the pitch in elements
  unsigned long long edges_at;              ///< bytes from the beginning of the block
  unsigned long long runs;                  ///< partials of a row in the workspace
  double factor;                            ///< of softmax: twice the scale
  unsigned rank, levels;
  unsigned run_levels;  ///< a warp reduces 2^run_levels batches of chunks to a partial
};

/// The blocks of all ranks.
struct CombineShardsArguments {
  const void* blocks;
  const long long* counts;
  void* out;
  unsigned long long block_bytes, edges_at, rows;
  unsigned ranks, levels;
};

}  // namespace hone
