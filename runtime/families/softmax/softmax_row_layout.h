// SoftmaxRowLayout: what a policy of the softmax over rows makes of a problem.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/families/row_chunks.h"
#include "runtime/families/row_held.h"
#include "runtime/families/row_tiles.h"
#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The policies of the softmax over rows.
struct SoftmaxRowPolicy {
  Scope scope = Scope::block;                ///< of a row
  std::int32_t threads_per_row = 0;          ///< of a warp; 0: more than a warp
  std::int32_t cluster_blocks = 1;           ///< of a row
  Combine combine = Combine::second_kernel;  ///< of a grid
  std::int32_t ring_kib = 0;                 ///< of each block of a grid that holds rows
  std::int32_t row_groups = 1;               ///< of its warps, which take rows in turn
  std::int32_t block_threads = 256;
  Staging staging = Staging::direct;  ///< where a row is held while it is used: in registers, or in shared memory, with
                                      ///< a ring for the next one
  std::int32_t packs_per_thread = 0;  ///< in registers, of all its rows; of chunks, loads at once
  std::int32_t smem_kib = 0;          ///< of a block, at most, that packs are held in
  MinBlocks min_blocks = MinBlocks::unset;

  bool is_group() const { return scope == Scope::warp && staging == Staging::direct; }
  bool is_in_tiles() const { return scope == Scope::warp && staging == Staging::shared; }  ///< softmax_tiles.cuh
  bool is_of_blocks() const { return scope == Scope::block || scope == Scope::cluster; }
  bool is_held() const { return scope == Scope::grid && combine == Combine::held; }  ///< row_held.cuh
  bool cuts_rows() const { return scope == Scope::grid && !is_held(); }  ///< into chunks that are read twice
  bool is_pipeline() const { return cuts_rows() && combine == Combine::pipeline; }
  bool is_chunks() const { return cuts_rows() && !is_pipeline(); }

  /// However many rows and chunks a member has, its partial results are within SoftmaxTraits::most_partials().
  std::size_t workspace_bytes(std::int64_t) const { return scope == Scope::grid ? kWorkspaceBytes : 0; }

  static const ParameterSpace& space();
};

/// Tiles of rows of a size class (row_tiles.cuh), of which row_threads threads have one each.
struct SoftmaxTileRows {
  std::int64_t least_each = 0;     ///< elements of a row for each thread, at least
  std::int64_t elements_each = 1;  ///< and at most
  std::int64_t of_thread = 1;      ///< rows
  std::int64_t in_areas = 1;       ///< of shared memory
  std::int64_t in_bytes = 0, out_bytes = 0;

  SoftmaxTileRows() = default;
  SoftmaxTileRows(const Problem& problem, const SoftmaxTraits& traits, std::int64_t row_threads, std::int64_t areas)
      : least_each(least_elements_each(problem, row_threads)),
        elements_each(most_elements_each(problem, row_threads)),
        in_areas(areas),
        in_bytes(traits.in_bytes),
        out_bytes(traits.out_bytes) {
    // 16-byte loads a thread in flight: a thread that has rows to itself computes them faster than a group does.
    const std::int64_t loads = row_threads == 1 ? 4 : 2 * in_areas, most = row_threads == 1 ? 4 : 8;
    const std::int64_t row_bytes = center_of(problem, 1) * in_bytes;
    of_thread = std::clamp<std::int64_t>(loads * kMaxAlignment * row_threads / row_bytes, 1, most);
  }

  std::int64_t smem_bytes(std::int64_t rows, std::int64_t columns) const {
    const auto area = [&](std::int64_t bytes) { return divide_up(rows * columns * bytes, 16) * 16 + 16; };
    return in_areas * area(in_bytes) + area(out_bytes);
  }
};

/// The numbers that a policy has on a problem. The same for all problems of one size class, but for `rows` and
/// `columns`.
struct SoftmaxRowLayout : SoftmaxRowPolicy {
  const Problem& problem;
  SoftmaxTraits traits{problem};
  bool is_aligned = problem.alignment >= kMaxAlignment;
  std::int64_t rows = problem.extents[0], columns = problem.extents[1];
  std::int64_t center_columns = center_of(problem, 1);  ///< of a row in the middle of the class
  std::int64_t center_packs = at_least_one(center_columns / traits.pack_elements);
  /// The threads of a row; with chunks, of a chunk.
  std::int64_t row_threads = threads_per_row > 0 ? threads_per_row : std::int64_t{block_threads} * cluster_blocks;
  std::int64_t row_packs = 1;  ///< of a row in each thread's registers
  std::int64_t rows_at_once = 1;
  SoftmaxTileRows tile;

  SoftmaxRowLayout(const Problem& of, const Policy& policy)
      : SoftmaxRowPolicy(policy.as<SoftmaxRowPolicy>()), problem(of) {
    if (is_group()) {
      row_packs = divide_up(center_packs, row_threads);
      rows_at_once = at_least_one(packs_per_thread / row_packs);
    } else if (is_in_tiles()) {
      tile = {problem, traits, row_threads, 1};
      rows_at_once = tile.of_thread;
    } else {
      row_packs = packs_per_thread;
    }
  }

  bool unrolls_rows() const {
    return is_in_tiles() && threads_per_row == 1 && tile.elements_each <= kMostUnrolledColumns;
  }
  std::int64_t groups() const { return threads_per_row > 0 ? block_threads / threads_per_row : 1; }
  std::int64_t tile_rows() const { return groups() * rows_at_once; }
  std::int64_t packs() const { return columns / traits.pack_elements; }
  std::int64_t pack_in_bytes() const { return traits.pack_elements * traits.in_bytes; }

  /// Packs for each thread to hold in shared memory.
  std::int64_t shared_packs(std::int64_t packs_of_row) const {
    const std::int64_t room = smem_kib * 1024 / (block_threads * pack_in_bytes());
    return std::min(room, divide_up(packs_of_row, row_threads));
  }
  std::int64_t smem_bytes(std::int64_t of_columns) const {
    if (is_in_tiles()) return tile.smem_bytes(tile_rows(), of_columns);
    if (is_held()) return std::int64_t{ring_kib} * 1024;
    if (smem_kib == 0) return 0;
    return shared_packs(of_columns / traits.pack_elements) * block_threads * pack_in_bytes();
  }

  /// Packs of a row that its threads hold together.
  std::int64_t held_packs(std::int64_t packs_of_row) const {
    if (is_in_tiles() || is_held()) return packs_of_row;
    if (cuts_rows()) return 0;
    return row_threads * (smem_kib > 0 ? shared_packs(packs_of_row) : row_packs);
  }

  /// Tiles of the grid-stride loop.
  std::int64_t tiles() const {
    if (scope == Scope::warp) return at_least_one(divide_up(rows, tile_rows()));
    if (is_held()) return at_least_one(rows) * at_least_one(divide_up(packs(), HeldRows::kChunkPacks));
    return at_least_one(rows) * (cuts_rows() ? row_chunks().tiles : cluster_blocks);
  }

  RowChunks row_chunks() const { return row_chunks(rows, columns); }
  RowChunks row_chunks(std::int64_t of_rows, std::int64_t of_columns) const {
    const std::int64_t tile_packs = std::int64_t{block_threads} * std::max(1, packs_per_thread);
    return {scope, combine, of_rows, at_least_one(divide_up(of_columns / traits.pack_elements, tile_packs)),
            traits.most_partials()};
  }
  HeldRows held_rows(std::int64_t of_columns, std::int64_t blocks) const {
    return {at_least_one(of_columns / traits.pack_elements), blocks, ring_kib, row_groups};
  }
  std::int64_t grid(std::int64_t max_blocks) const {
    if (is_held()) return max_blocks;
    return whole_clusters(max_blocks, tiles(), cluster_blocks);
  }
  std::int64_t chunks(std::int64_t max_blocks) const { return row_chunks().count(grid(max_blocks)); }
};

}  // namespace hone
