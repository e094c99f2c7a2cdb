// SoftmaxRowLayout: what a policy of the softmax over rows makes of a problem, and which policies make no sense for it.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/families/softmax_base.h"

namespace hone {

/// A Policy of the softmax over rows, decoded.
struct SoftmaxRowPolicy {
  enum class Way { group, tiles, block, cluster, chunks, pipeline };

  int group_lanes = 0;     ///< of a row, where it has less than a block; 0 otherwise
  int cluster_blocks = 1;  ///< of a row
  Way way = Way::block;
  int block_threads = 0;
  int packs = 0;           ///< in a thread's registers, of all its rows; of chunks, loads at once. 0: in shared memory
  int smem_kib = 0;        ///< of shared memory, at most, that packs are held in

  bool cuts_rows() const { return way == Way::chunks || way == Way::pipeline; }  ///< into chunks that are read twice

  explicit SoftmaxRowPolicy(const Policy& policy);
};

/// Of those policies.
ParameterSpace softmax_row_space();

/// The numbers that a policy has on a problem. The same for all problems of one size class, but for `rows` and
/// `columns`.
struct SoftmaxRowLayout {
  /// Rows whose partial results a pipeline keeps (kRing of softmax_pipeline.cuh).
  static constexpr std::int64_t kPipelinedRows = 16;

  SoftmaxRowPolicy policy;
  SoftmaxTraits traits;
  std::int64_t rows, columns;
  std::int64_t center_packs;   ///< of a row in the middle of the class
  std::int64_t row_threads;    ///< that share a row; of chunks, of a chunk
  std::int64_t row_packs = 1;  ///< of a row in each thread's registers
  std::int64_t rows_at_once = 1;
  std::int64_t least_each = 0;     ///< elements of a row for each thread of a tile, at least
  std::int64_t elements_each = 1;  ///< and at most
  bool is_aligned;

  SoftmaxRowLayout(const Problem& problem, const Policy& of);

  /// Why the policy makes no sense for the problem that the layout was made of; "" where it does.
  std::string reject(const Problem& problem, const DeviceFacts& facts) const;

  std::int64_t groups() const { return policy.group_lanes > 0 ? policy.block_threads / policy.group_lanes : 1; }
  std::int64_t tile_rows() const { return groups() * rows_at_once; }
  std::int64_t packs() const { return columns / traits.pack_elements; }
  std::int64_t pack_in_bytes() const { return traits.pack_elements * traits.in_bytes; }

  /// Packs for each thread to hold in shared memory.
  std::int64_t shared_packs(std::int64_t packs_of_row) const;
  std::int64_t tile_smem_bytes(std::int64_t of_columns) const;
  std::int64_t smem_bytes(std::int64_t of_columns) const;

  /// Packs of a row that its threads hold together.
  std::int64_t held_packs(std::int64_t packs_of_row) const;

  /// Blocks at work of which each has its turns.
  std::int64_t tiles() const;

  /// Loads of a whole block that a row takes, which more chunks could not share out.
  std::int64_t chunk_tiles() const;
  std::int64_t grid(std::int64_t max_blocks) const;
  std::int64_t chunks(std::int64_t max_blocks) const;

  /// Rows whose chunks are published before one of the first is written: while all blocks have an item and a ticket for
  /// the next, half of them to publish, nothing is taken that waits.
  std::int64_t lag(std::int64_t max_blocks) const;

  /// Of a workspace.
  std::int64_t partials(std::int64_t max_blocks) const;

 private:
  std::string reject_group() const;
  std::string reject_tiles(const Problem& problem, const DeviceFacts& facts) const;
  std::string reject_chunks(const Problem& problem) const;
  std::string reject_pipeline(const Problem& problem, const DeviceFacts& facts) const;
  std::string reject_block(const DeviceFacts& facts) const;  ///< blocks and clusters of them
};

}  // namespace hone
