// SoftmaxRowLayout: what a policy of the softmax over rows makes of a problem, and which policies make no sense for it.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The policies of the softmax over rows.
struct SoftmaxRowPolicy {
  /// Of softmax.cuh, softmax_tiles.cuh and softmax_pipeline.cuh.
  enum class Algorithm { group, tiles, block, cluster, chunks, pipeline };

  Scope scope = Scope::block;         ///< of a row
  std::int32_t threads_per_row = 0;   ///< of a warp; 0: more than a warp
  std::int32_t cluster_blocks = 1;    ///< of a row
  Combine combine = Combine::second_kernel;  ///< of a grid
  std::int32_t block_threads = 256;
  Staging staging = Staging::direct;  ///< where a row is held while it is used: in registers, or in shared memory
  std::int32_t packs_per_thread = 0;  ///< in registers, of all its rows; of chunks, loads at once
  std::int32_t smem_kib = 0;          ///< of a block, at most, that packs are held in

  Algorithm algorithm() const;
  bool cuts_rows() const { return scope == Scope::grid; }  ///< into chunks that are read twice

  static const ParameterSpace& space();
};

/// The numbers that a policy has on a problem. The same for all problems of one size class, but for `rows` and
/// `columns`.
struct SoftmaxRowLayout {
  /// Rows whose partial results a pipeline keeps (kRing of softmax_pipeline.cuh).
  static constexpr std::int64_t kPipelinedRows = 16;

  SoftmaxRowPolicy policy;
  SoftmaxRowPolicy::Algorithm algorithm;
  SoftmaxTraits traits;
  std::int64_t rows, columns;
  std::int64_t center_columns, center_packs;  ///< of a row in the middle of the class
  std::int64_t row_threads;    ///< that share a row; of chunks, of a chunk
  std::int64_t row_packs = 1;  ///< of a row in each thread's registers
  std::int64_t rows_at_once = 1;
  std::int64_t least_each = 0;     ///< elements of a row for each thread of a tile, at least
  std::int64_t elements_each = 1;  ///< and at most
  bool is_aligned;

  SoftmaxRowLayout(const Problem& problem, const Policy& of);

  /// KernelFamily::is_valid() and prune() for the class that the layout's problem is of.
  std::string is_valid(const ProblemClass& problem_class, const DeviceFacts& facts) const;
  std::string prune(const ProblemClass& problem_class, const DeviceFacts& facts) const;

  std::int64_t groups() const { return policy.threads_per_row > 0 ? policy.block_threads / policy.threads_per_row : 1; }
  std::int64_t tile_rows() const { return groups() * rows_at_once; }
  std::int64_t packs() const { return columns / traits.pack_elements; }
  std::int64_t pack_in_bytes() const { return traits.pack_elements * traits.in_bytes; }

  /// Packs for each thread to hold in shared memory.
  std::int64_t shared_packs(std::int64_t packs_of_row) const;
  std::int64_t tile_smem_bytes(std::int64_t of_columns) const;
  std::int64_t smem_bytes(std::int64_t of_columns) const;

  /// Packs of a row that its threads hold together.
  std::int64_t held_packs(std::int64_t packs_of_row) const;

  /// Tiles of the grid-stride loop.
  std::int64_t tiles() const;

  /// Loads of a whole block that a row takes, which more chunks could not share out.
  std::int64_t chunk_tiles() const;
  std::int64_t grid(std::int64_t max_blocks) const;
  std::int64_t chunks(std::int64_t max_blocks) const;

  /// Rows whose chunks are published before one of the first is written: while all blocks have an item and a ticket for
  /// the next, half of them to publish, nothing is taken that waits.
  std::int64_t lag(std::int64_t max_blocks) const;

 private:
  std::string prune_group() const;
  std::string prune_tiles() const;
  std::string prune_chunks() const;
  std::string prune_pipeline(const ProblemClass& problem_class, const DeviceFacts& facts) const;
  std::string prune_block() const;  ///< blocks and clusters of them
};

}  // namespace hone
