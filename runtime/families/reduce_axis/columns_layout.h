// ColumnsLayout: what a policy of reduce_columns makes of a problem.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/reduce_axis/axis_family.h"

namespace hone {

/// The most that the states of a thread's columns may take: 32 registers.
inline constexpr std::int64_t kMostColumnStateBytes = 128;

/// With so few tiles of a thread, the first is worth code of its own: f16 logsumexp of 31 x 1048577 24.8 to 23.3 µs, of
/// 4 x 2^24 58.7 to 48.6 (H200); with more, code is long enough as it is.
inline constexpr std::int64_t kFewTiles = 4;

/// A policy on a problem.
struct ColumnsLayout : ColumnsPolicy {
  const Problem& problem;
  AxisLayout axis = AxisLayout::of_columns(problem);
  std::int64_t element = element_bytes(problem);
  std::int64_t state = static_cast<std::int64_t>(axis_state_bytes(problem));
  bool is_phase_matched;  ///< all rows of a thread have the same alignment
  std::int64_t pack_elements;
  std::int64_t columns;  ///< of a tile, at most
  bool may_fold;         ///< whether several rows fit a tile, in the whole size class
  std::int64_t folds;    ///< rows that are taken as one
  std::int64_t rows;     ///< what is left of the reduced extent then
  std::int64_t slice_tiles;
  std::int64_t tiles;  ///< of all slices
  std::int64_t tile_columns;  ///< of all tiles of a slice but the last
  std::int64_t tile_rows = std::int64_t{threads_per_column} * unroll;

  ColumnsLayout(const Problem& of, const Policy& policy, std::int64_t most_state_bytes = kMostColumnStateBytes)
      : ColumnsPolicy(policy.as<ColumnsPolicy>()),
        problem(of),
        is_phase_matched(!is_aligned(problem) && staging != Staging::shifted),
        pack_elements(kMaxAlignment / element) {
    while (pack_elements > 1 && (pack_elements * state > most_state_bytes ||
                                 (is_phase_matched && pack_elements > threads_per_column) ||
                                 (staging == Staging::shifted && pack_elements > unroll)))
      pack_elements /= 2;
    const bool shifts = is_phase_matched && pack_elements > 1;
    columns = std::max(1, lanes() - (shifts ? 1 : 0)) * pack_elements;
    may_fold = 2 * last_of(problem, 2) <= columns;
    folds = may_fold && !has_gaps() ? columns / at_least_one(axis.inner) : 1;
    rows = divide_up(axis.reduced, folds);
    divide_columns(columns);
  }

  /// Divides a slice into tiles of so many columns.
  void divide_columns(std::int64_t each) {
    tile_columns = each;
    slice_tiles = may_fold ? 1 : divide_up(axis.inner, each);
    tiles = axis.outer * slice_tiles;
  }

  /// The same columns in tiles that are alike, as many for each of so many blocks. That takes more tiles, which leave
  /// threads without a pack: up to twice as many where each block has one, of more than few tiles of rows, else an
  /// eighth more. The tiles of aligned rows are whole lines of the cache.
  void even_out(std::int64_t blocks) {
    if (may_fold) return;
    const bool are_long = tiles <= blocks && !takes_tiles_up_to(kFewTiles);
    const std::int64_t wanted = is_split() ? tiles : divide_up(tiles, blocks) * blocks;
    const std::int64_t most = are_long ? 2 * tiles : tiles + tiles / 8;
    const std::int64_t of_slice = wanted <= most ? wanted / at_least_one(axis.outer) : slice_tiles;
    const std::int64_t line = is_aligned(problem) ? 128 / element : pack_elements;
    const std::int64_t each = divide_up(axis.inner, std::max(of_slice, slice_tiles));
    divide_columns(std::min(columns, divide_up(each, line) * line));
  }

  bool has_gaps() const { return axis.reduced_stride != axis.inner; }
  StagedTile staged_tile() const { return {problem, block_threads, threads_per_column, unroll}; }
  CombiningBlock combining_block() const { return {block_threads, last_of(problem, 2)}; }

  /// `bytes`: the static shared memory of the kernel that takes columns. The host device counts that of all kernels of
  /// a unit, and the one that combines parts has at most a state for each thread.
  Reason check_smem_of_kernels(const DeviceFacts& facts, std::int64_t bytes) const {
    return check_static_smem(bytes + (is_split() && is_host(facts) ? block_threads * state : 0));
  }

  std::int64_t parts(std::int64_t max_blocks) const {
    if (!is_split()) return 1;
    return std::clamp<std::int64_t>(max_blocks / at_least_one(tiles), 1,
                                    at_least_one(divide_up(rows, threads_per_column)));
  }

  /// Adds the launch of the kernel that takes columns, and that of the one that combines their parts.
  void add_launches(int entry, const Spans& split, std::int64_t max_blocks, std::span<void* const> buffers,
                    void* workspace, LaunchList& launches) const {
    const ColumnsArguments arguments{.in = buffers[0],
                                     .out = buffers[1],
                                     .workspace = workspace,
                                     .outer = static_cast<std::uint64_t>(axis.outer),
                                     .reduced = static_cast<std::uint64_t>(axis.reduced),
                                     .inner = static_cast<std::uint64_t>(axis.inner),
                                     .pitch = static_cast<std::uint64_t>(axis.reduced_stride),
                                     .slice_pitch = static_cast<std::uint64_t>(axis.outer_stride),
                                     .rows = static_cast<std::uint64_t>(rows),
                                     .slice_tiles = static_cast<std::uint64_t>(slice_tiles),
                                     .tile_columns = static_cast<unsigned>(tile_columns),
                                     .folds = static_cast<unsigned>(folds),
                                     .parts = static_cast<unsigned>(split.count),
                                     .run_levels = static_cast<unsigned>(std::max(0, split.levels)),
                                     .cut_levels = static_cast<unsigned>(std::max(0, -split.levels))};
    add_launch(launches, std::min(tiles * split.count, max_blocks), block_threads, arguments, entry);
    if (split.count > 1)
      add_combining_launch(launches, combining_block(), axis, arguments.parts, workspace, buffers[1]);
  }

  /// True if a thread takes its rows in at most so many tiles, in the whole size class.
  bool takes_tiles_up_to(std::int64_t most) const { return !is_split() && last_of(problem, 1) <= most * tile_rows; }
};

}  // namespace hone
