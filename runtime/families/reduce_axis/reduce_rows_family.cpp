#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce_axis/axis_family.h"
#include "runtime/families/reduce_axis/canonical_rows.h"

namespace hone {
namespace {

/// A thread's packs, over all of its rows, are in registers at once.
constexpr int kMostPacksOfThread = 8;
constexpr int kMostPacksOfBytes = 4;  ///< of 8-bit elements, which take more registers than their packs
constexpr int kMostPacksOfBlock = 4096;

/// More rows than this have no need of several blocks each; what they publish fits the workspace in any case.
constexpr std::int64_t kMostSplitRows = 2048;

constexpr std::int64_t kThreadsThatFillAnSm = 256;
constexpr std::int64_t kEnoughWaves = 8;

/// Tiles of a row after which the combination of a block's threads is a small part of the work.
constexpr std::int64_t kManyTiles = 4;

/// A policy on a problem.
struct Layout : RowsPolicy {
  const Problem& problem;
  AxisLayout axis = AxisLayout::of_rows(problem);
  std::int64_t rows = axis.outer, columns = axis.reduced;
  std::int64_t packs = divide_up(columns * element_bytes(problem), kMaxAlignment);  ///< of a row
  std::int64_t tile = std::int64_t{block_threads} * unroll;                         ///< packs of a row, by a block

  Layout(const Problem& of, const Policy& policy) : RowsPolicy(policy.as<RowsPolicy>()), problem(of) {}

  StagedTile staged_tile() const { return {problem, block_threads, threads_per_row, unroll}; }

  /// Blocks of a row that a grid shares.
  std::int64_t parts(std::int64_t max_blocks) const {
    return std::clamp<std::int64_t>(max_blocks / at_least_one(rows), 1, at_least_one(divide_up(packs, tile)));
  }
  CombiningBlock combining_block() const { return {block_threads, last_of(problem, 0)}; }
  bool has_gaps() const { return axis.outer_stride != columns; }

  Reason is_valid(const DeviceFacts& facts) const {
    std::size_t tail_states = tail == Tail::shared ? block_threads + 2 * cluster_blocks : 0;
    // On the host device the kernels of a module have their shared memory side by side.
    if (is_host(facts) && scope == Scope::grid && tail == Tail::shared) tail_states += block_threads;
    return first_reason({check_blocks(facts, block_threads, cluster_blocks),
                         check_static_smem(static_cast<std::int64_t>(tail_states * axis_state_bytes(problem))),
                         is_staged() ? staged_tile().is_valid() : Reason()});
  }

  Unit unit() const {
    const int values = op_of(problem).outputs;
    const auto lanes = [&](int loads, int at_once) {
      return fmt::format("using Lanes = hone::RowLanes<Op, {}, {}, {}, {}, {}, Out, {}>;\n", block_threads,
                         threads_per_row, loads, at_once, is_aligned(problem), values);
    };
    if (is_direct_warp())
      return unit_of(axis_prologue(problem, "reduce_rows.cuh") + lanes(unroll, rows_per_thread),
                     {kernel_entry("Lanes::reduce", *this)});
    if (is_staged())  // lanes take rows with gaps
      return unit_of(axis_prologue(problem, "staged_reduce.cuh\"\n#include \"reduce_rows.cuh") +
                         staged_tile().source(true, values) + lanes(1, 1),
                     {kernel_entry("Kernel::reduce", *this), kernel_entry("Lanes::reduce", *this)});
    const std::string source = axis_prologue(problem, "reduce_rows.cuh") +
                               fmt::format("using Kernel = hone::RowBlocks<Op, {}, {}, Out, {}, hone::Tail::{}>;\n",
                                           block_threads, unroll, values, tail_parameter[tail]);
    if (scope == Scope::grid)
      return unit_of(source, {kernel_entry("Kernel::reduce<hone::Grid::publish>", *this),
                              combining_entry(combining_block(), values)});
    return unit_of(source,
                   {kernel_entry(fmt::format("Kernel::reduce<hone::Grid::none, {}>", cluster_blocks), *this)});
  }

  WorkShape shape() const {
    const std::int64_t some_packs = at_least_one(packs), count = at_least_one(rows);
    WorkShape shape{.independent_blocks = scope != Scope::grid};
    if (is_staged()) {
      shape.tiles = staged_tile().tiles(axis);
      shape.bytes_in_flight_per_block = staged_tile().bytes();
    } else if (scope == Scope::warp) {
      const std::int64_t at_once = std::int64_t{threads_per_row} * unroll;
      shape.tiles = divide_up(count, tile_rows());
      shape.bytes_in_flight_per_block = tile_rows() * std::min(some_packs, at_once) * kMaxAlignment;
      if (threads_per_row == 1 && some_packs > at_once) shape.traffic = kHalfSectors;
    } else if (scope == Scope::grid) {
      shape.tiles = count * divide_up(some_packs, tile);
      shape.bytes_in_flight_per_block = tile * kMaxAlignment;
      shape.launches = 2;
    } else {
      shape.tiles = count * cluster_blocks;
      shape.bytes_in_flight_per_block = std::min(some_packs, tile) * kMaxAlignment;
    }
    return shape;
  }

  std::size_t workspace_bytes(std::int64_t max_blocks) const {
    if (scope != Scope::grid) return 0;
    const std::int64_t partials = std::max(max_blocks, last_of(problem, 0));
    return kWorkspaceHeaderBytes + static_cast<std::size_t>(partials) * axis_state_bytes(problem);
  }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const {
    if (is_staged() && (!has_gaps() || rows <= 1))
      return staged_tile().add_launch(launches, axis, max_blocks, buffers);
    const bool is_split = scope == Scope::grid;
    const auto of_row = static_cast<unsigned>(is_split ? parts(max_blocks) : 1);
    std::int64_t blocks = is_split ? rows * of_row : std::min(rows, max_blocks);
    if (scope == Scope::warp) blocks = std::min(divide_up(rows, tile_rows()), max_blocks);
    if (scope == Scope::cluster)
      blocks = std::clamp<std::int64_t>(max_blocks / cluster_blocks, 1, at_least_one(rows)) * cluster_blocks;
    const int entry = is_staged() ? 1 : 0;  // rows with gaps cannot be staged
    add_launch(launches, blocks, block_threads,
               RowsArguments{.in = buffers[0],
                             .out = buffers[1],
                             .workspace = workspace,
                             .rows = static_cast<std::uint64_t>(rows),
                             .columns = static_cast<std::uint64_t>(columns),
                             .pitch = static_cast<std::uint64_t>(axis.outer_stride),
                             .parts = of_row},
               entry, cluster_blocks);
    if (is_split) add_combining_launch(launches, combining_block(), axis, of_row, workspace, buffers[1]);
  }

  std::int64_t longest_chain(std::int64_t max_blocks) const {
    const std::int64_t tile_levels = 7;  // of 8 packs of 16 elements
    const std::int64_t block_levels = tail == Tail::warp ? 10 : block_threads / 32 + 32;
    if (is_staged() && !has_gaps()) return staged_tile().chain(axis);
    if (scope == Scope::warp) {
      const std::int64_t loads = is_staged() ? 1 : unroll;
      const std::int64_t ends = 2 * kMaxAlignment / element_bytes(problem) / threads_per_row + 1;
      return tile_levels + divide_up(packs, threads_per_row * loads) + loads + ends + block_levels;
    }
    const std::int64_t of_row = scope == Scope::grid ? parts(max_blocks) : cluster_blocks;
    return tile_levels + divide_up(packs, tile * of_row) + unroll + 1 + 2 * block_levels + of_row;
  }
};

struct View : PolicyView<Layout> {
  using PolicyView::PolicyView;

  std::int64_t at_once = std::int64_t{threads_per_row} * unroll;  ///< packs of a row, by lanes
  std::int64_t blocks = scope == Scope::grid ? 2 : cluster_blocks;
};

constexpr std::array<PruneRule<View>, 4> kRules{{
    kNoLaunchBounds<View, MinBlocks::one>,
    {"more warps gain nothing where loads are what threads wait for", kNotMeasured,
     [](const View& v) { return v.min_blocks == MinBlocks::one_half; }},
    {"a staged tile is in no registers", "the same loads in flight, through cp.async",
     [](const View& v) { return v.min_blocks != MinBlocks::one && v.is_staged(); }},
    {"rows are aligned: they need not be copied to shared memory first", "104.9 % (H100, prune_rules)",
     [](const View& v) { return v.is_staged() && is_aligned(v.problem); }},
}};

constexpr std::array<PruneRule<View>, 9> kWarpRules{{
    {"a block's warps have nothing to tell each other: 512 threads are enough", "107.5 % (H100, prune_rules)",
     [](const View& v) { return v.block_threads > 512; }},
    {"the packs of a thread's rows are more than its registers hold", "101.0 % (H100, prune_rules)",
     [](const View& v) {
       return v.unroll * v.rows_per_thread > (element_bytes(v.problem) == 1 ? kMostPacksOfBytes : kMostPacksOfThread);
     }},
    {"rows are not aligned, and so short that most elements lie outside of their packs", kNotMeasured,
     [](const View& v) { return !is_aligned(v.problem) && v.packs < 8 && v.columns > 1; }},
    {"a row has too few packs for so many threads", kNotMeasured,
     [](const View& v) { return v.threads_per_row > 1 && v.threads_per_row >= 2 * v.packs; }},
    {"threads load more packs at once than a row has", "99.1 % (H100, prune_rules)",
     [](const View& v) { return v.unroll > 1 && v.at_once >= 2 * v.packs; }},
    {"threads go through a row in several tiles, so one row at once is enough", "104.5 % (H100, prune_rules)",
     [](const View& v) { return v.rows_per_thread > 1 && v.packs > 2 * v.at_once; }},
    {"a row has too many packs for so few threads", "104.4 % (H100, prune_rules)",
     [](const View& v) { return v.threads_per_row < 32 && v.packs > 16 * v.threads_per_row; }},
    {"a row has too many packs for a warp", kNotMeasured,
     [](const View& v) { return v.threads_per_row == 32 && v.packs > 8192; }},
    {"rows of so few threads leave most of the device idle", kNotMeasured,
     [](const View& v) {
       return v.packs > 4 * v.at_once && v.rows * v.threads_per_row < v.facts.sm_count * kThreadsThatFillAnSm;
     }},
}};

constexpr std::array<PruneRule<View>, 7> kBlockRules{{
    {"so many small elements do not fit the registers", "99.2 % (H100, prune_rules)",
     [](const View& v) { return element_bytes(v.problem) <= 2 && v.unroll > 4; }},
    {"the tile of a block is more than its registers hold", "104.3 % (H100, prune_rules)",
     [](const View& v) { return v.tile > kMostPacksOfBlock; }},
    {"so many rows need no second kernel", kNotMeasured,
     [](const View& v) { return v.scope == Scope::grid && v.rows > kMostSplitRows; }},
    {"the blocks of a row load more packs at once than it has", "27 times as slow (H100, prune_rules)",
     [](const View& v) { return v.tile * v.blocks >= 2 * v.packs; }},
    {"the blocks of all rows leave most SMs idle", kNotMeasured,
     [](const View& v) {
       return v.scope != Scope::grid && v.packs > 4 * v.tile * v.blocks && 2 * v.rows * v.blocks < v.facts.sm_count;
     }},
    {"there are rows enough for a block each", kNotMeasured,
     [](const View& v) {
       return v.scope != Scope::block && v.rows > kEnoughWaves * v.facts.sm_count && v.packs < 16 * v.tile;
     }},
    {"a block combines its threads too rarely for that to matter", "100.6 % (H100, prune_rules)",
     [](const View& v) { return v.tail != Tail::warp && v.packs > kManyTiles * v.tile * v.blocks; }},
}};

Reason pruned(const View& v) {
  return first_reason({pruned_by(kRules, v), v.is_staged()             ? v.staged_tile().prune()
                                             : v.scope == Scope::warp ? pruned_by(kWarpRules, v)
                                                                      : pruned_by(kBlockRules, v)});
}

}  // namespace

const ParameterSpace& RowsPolicy::space() {
  using P = RowsPolicy;
  static const auto& space = never_destroyed(space_of<P>(
      PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
      PolicyField{&P::scope, scope_parameter({Scope::warp, Scope::block, Scope::cluster, Scope::grid})},
      PolicyField{&P::threads_per_row,
                  ordinal("threads_per_row", {1, 2, 4, 8, 16, 32}).only_if("scope", {Scope::warp})},
      PolicyField{&P::staging, staging_parameter({Staging::direct, Staging::shared}).only_if("scope", {Scope::warp})},
      PolicyField{&P::unroll, ordinal("unroll", {1, 2, 4, 8})},
      PolicyField{&P::rows_per_thread, ordinal("rows_per_thread", {1, 2, 4})
                                           .only_if("scope", {Scope::warp})
                                           .only_if("staging", {Staging::direct})
                                           .otherwise(1)},
      PolicyField{&P::cluster_blocks, cluster_parameter({4, 8})},
      PolicyField{
          &P::tail,
          tail_parameter({Tail::warp, Tail::shared}).only_if("scope", {Scope::block, Scope::cluster, Scope::grid})},
      PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::one, MinBlocks::unset, MinBlocks::one_half})}));
  return space;
}

const KernelFamily& reduce_rows_family() {
  static const auto& family = never_destroyed<LayoutFamily<AxisFamily, Layout, pruned, CanonicalRows>>(
      FamilyTraits{.name = "reduce_rows",
                   .space = RowsPolicy::space(),
                   .extent_names = {"rows", "columns"},
                   .kernels = {"reduce_rows.cuh", "staged_reduce.cuh", "canonical_row_blocks.cuh",
                               "canonical_row_lanes.cuh", "canonical_row_tiles.cuh"}});
  return family;
}

Problem reduce_rows_problem(const ReduceSpec& spec, const RowsShape& shape, std::uint32_t alignment) {
  return axis_problem(reduce_rows_family(), spec, {shape.rows, shape.columns, 1}, shape.pitch, shape.columns,
                      alignment);
}

}  // namespace hone
