// CanonicalSoftmax: policies of softmax with reproducible numerics (canonical_softmax.cuh), and their verification.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hone/kernel_family.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/softmax/softmax_reference.h"
#include "runtime/families/softmax/softmax_row_layout.h"

namespace hone {

/// A policy on a problem over rows. packs_per_thread counts packs of whole rows where lanes hold them, else packs of 16
/// bytes in flight: 4 are a chunk of a warp. In shared memory a warp takes a chunk at a time, and so does one with a
/// ring, or of a grid that holds rows. Of two chunks that a warp holds, one is kept in shared memory where weights are
/// twice as wide as elements.
struct CanonicalSoftmax : SoftmaxRowPolicy {
  const Problem& problem;
  SoftmaxTraits traits{problem};
  std::int64_t rows = problem.extents[0], columns = problem.extents[1];
  std::int64_t chunk = kChunkBytes / traits.in_bytes;                                 ///< elements
  std::int64_t chunks_at_once = std::max(1, packs_per_thread / 4);                    ///< of a warp
  std::int64_t tile = block_threads / 32 * chunks_at_once * chunk;                    ///< elements of a block
  std::int64_t row_packs = 1;                                                         ///< a lane's, of the longest row
  std::int64_t whole_packs = 1;                                                       ///< of one in the class's middle
  std::int64_t of_lanes = 0;                                                          ///< elements of a row, at most
  SoftmaxTileRows tile_of_lanes;
  bool is_ring = staging == Staging::ring;
  bool is_in_shared = staging == Staging::shared || is_ring;
  /// Registers or shared memory of a block or a cluster hold rows: all, or those that are no longer than its tiles.
  bool is_on_chip = scope != Scope::grid && (is_in_shared || scope != Scope::block || last_of(problem, 1) <= 2 * tile);
  bool is_aligned = problem.alignment >= kMaxAlignment;
  /// Rows of a chunk at most, which begin anywhere, are in tiles (row_tiles.cuh).
  bool has_tiles = is_in_tiles() && (threads_per_row < 32 || (!is_aligned && last_of(problem, 1) <= chunk));
  std::int64_t pack = traits.pack_elements;  ///< elements; of rows that begin anywhere, packs are turned (HeldChunks)

  CanonicalSoftmax(const Problem& of, const Policy& policy);

  /// Rows that a group of lanes holds at once, and rows of a block; only where lanes hold rows.
  std::int64_t rows_at_once() const {
    return has_tiles ? tile_of_lanes.of_thread : at_least_one(packs_per_thread / whole_packs);
  }
  /// True if a warp reads rows twice that are longer than what it holds, which is a chunk; not so long ones have twice
  /// the packs.
  bool reads_twice() const { return row_packs > whole_packs && threads_per_row * whole_packs * pack >= chunk; }
  /// The elements that a lane holds at once. Longer rows than most have twice the lanes, if there are as many.
  std::int64_t held_elements() const {
    const std::int64_t of_rows = rows_at_once() * whole_packs;
    return (threads_per_row == 32 && !reads_twice() ? std::max(row_packs, of_rows) : of_rows) * pack;
  }
  MinBlocks bounds_of_held(std::int64_t elements) const;  ///< of kernels whose lanes hold so many in registers
  std::int64_t tile_rows() const { return block_threads / threads_per_row * rows_at_once(); }

  std::int64_t row_warps() const { return scope == Scope::warp ? 1 : block_threads / 32; }  ///< of a block
  /// Blocks of a cluster, at least two, and threads of a block that have a part of a row: no others are launched.
  std::int64_t launched_blocks() const;
  std::int64_t launched_threads() const;
  /// The blocks of a persistent grid with as many waves as the geometry has of blocks of other threads.
  std::int64_t most_blocks(const Geometry& geometry) const;
  std::int64_t slot_bytes() const { return chunk * static_cast<std::int64_t>(info(traits.accumulator).size_bytes); }
  std::int64_t smem_bytes(std::int64_t of_columns) const;  ///< of a block, where it holds rows of so many elements
  std::int64_t chunks_of_block(std::int64_t of_columns) const;  ///< of a row that blocks or warps hold
  /// The shared memory of a block in which rows of so many elements pass through a ring.
  std::int64_t ring_bytes(std::int64_t of_columns) const { return smem_bytes(of_columns) + ring_static_bytes(); }

  HeldRows held_rows(std::int64_t of_columns, std::int64_t blocks) const;

  Reason is_valid(const DeviceFacts& facts) const;
  Unit unit() const;
  WorkShape shape() const;
  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const;

  static Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts);

 private:
  Reason held_is_valid(const DeviceFacts& facts) const;
  Reason tiles_are_valid(const DeviceFacts& facts) const;
  Reason ring_is_valid(const DeviceFacts& facts) const;
  std::int64_t most_of_lanes() const;  ///< elements of a row that lanes can hold
  /// True if blocks are for several rows each, since they prefetch the next one: 8192 rows of 8192 f16 take blocks 73.6
  /// µs, and 76.2 with a row each (H200, CUDA 13.0, 2026-11-30).
  bool loads_ahead() const;
  std::int64_t chunks_of_lane() const;  ///< of the longest row, whose sums a lane combines: a power of two
  std::int64_t ring_slot_bytes() const { return kChunkBytes + (is_aligned ? 0 : kMaxAlignment); }
  std::int64_t ring_blocks(std::int64_t of_columns) const;  ///< of a cluster: as few as have a warp for each chunk
  std::int64_t ring_static_bytes() const;
  std::int64_t exchanged_bytes() const;  ///< static shared memory of warps and blocks that share a row
  std::int64_t kept_bytes() const { return traits.is_log ? kChunkBytes : slot_bytes(); }  ///< of a chunk
  /// How many of the chunks that a warp holds are kept in shared memory: kChunksInShared of the kernel.
  std::int64_t chunks_in_shared() const {
    const bool are_wide = slot_bytes() == 2 * kChunkBytes && (is_aligned || !traits.is_log);
    return scope != Scope::warp && chunks_at_once == 2 && are_wide ? 1 : 0;
  }
  std::int64_t row_tiles() const { return at_least_one(divide_up(columns, tile)); }
  Spans spans(std::int64_t max_blocks) const;
  double instructions_per_byte() const;
};

namespace canonical {

/// Checks what softmax_reference::verify() does, in every bit of each result. `factor` is twice the scale, as an
/// accumulator.
std::string verify_softmax(const softmax_reference::Computation& computation, double factor,
                           std::span<const std::byte> pattern, std::span<const ElementRange> parts,
                           const std::function<softmax_reference::Line(std::int64_t)>& line_of,
                           std::span<const std::byte> output);

/// The weights, as accumulators, of elements of a row whose heaviest element is `origin`: CanonicalPowers.
std::vector<std::byte> softmax_weights(const softmax_reference::Computation& computation, double factor, double origin,
                                       std::span<const std::byte> elements);

/// The results of elements of a row whose weights have that sum, as stored.
std::vector<std::byte> softmax_shares(const softmax_reference::Computation& computation, double factor, double origin,
                                      double sum, std::span<const std::byte> elements);

}  // namespace canonical
}  // namespace hone
