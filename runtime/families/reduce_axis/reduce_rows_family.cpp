#include "runtime/families/reduce_axis/reduce_rows_family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce_axis/axis_family.h"

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

std::int64_t rows_of(const Problem& problem) { return problem.extents[0]; }
std::int64_t columns_of(const Problem& problem) { return problem.extents[1]; }
std::int64_t packs_of_row(const Problem& problem) {
  return divide_up(columns_of(problem) * element_bytes(problem), kMaxAlignment);
}
std::int64_t pitch_of(const Problem& problem) {
  return problem.pitches[0] != 0 ? problem.pitches[0] : columns_of(problem);
}
bool has_gaps(const Problem& problem) { return pitch_of(problem) != columns_of(problem) && rows_of(problem) > 1; }

StagedTile staged_tile(const Problem& problem, const RowsPolicy& policy) {
  return {problem, policy.block_threads, policy.threads_per_row, policy.unroll};
}

std::int64_t parts_of(const Problem& problem, const Candidate& candidate) {
  const auto policy = candidate.policy.as<RowsPolicy>();
  const std::int64_t tiles = divide_up(packs_of_row(problem), policy.block_threads * policy.unroll);
  return std::clamp<std::int64_t>(candidate.geometry.max_blocks / std::max<std::int64_t>(1, rows_of(problem)), 1,
                                  std::max<std::int64_t>(1, tiles));
}

CombiningBlock combining_block(const Problem& problem, const RowsPolicy& policy) {
  return {policy.block_threads, size_ranges(problem.extents)[0].last};
}

struct View : PolicyView<RowsPolicy> {
  using PolicyView::PolicyView;

  std::int64_t rows = rows_of(problem());
  std::int64_t packs = packs_of_row(problem());
  std::int64_t at_once = std::int64_t{policy.threads_per_row} * policy.unroll;  ///< packs of a row, by lanes
  std::int64_t tile = std::int64_t{policy.block_threads} * policy.unroll;       ///< packs of a row, by a block
  std::int64_t blocks = policy.scope == Scope::grid ? 2 : policy.cluster_blocks;
};

constexpr std::array<PruneRule<View>, 3> kRules{{
    kNoLaunchBounds<View>,
    {"a staged tile is in no registers", "the same loads in flight, through cp.async",
     [](const View& v) { return v.policy.min_blocks != MinBlocks::one && v.policy.is_staged(); }},
    {"rows are aligned: they need not be copied to shared memory first", kNotMeasured,
     [](const View& v) { return v.policy.is_staged() && is_aligned(v.problem()); }},
}};

constexpr std::array<PruneRule<View>, 9> kWarpRules{{
    {"a block's warps have nothing to tell each other: 512 threads are enough", kNotMeasured,
     [](const View& v) { return v.policy.block_threads > 512; }},
    {"the packs of a thread's rows are more than its registers hold", kNotMeasured,
     [](const View& v) {
       return v.policy.unroll * v.policy.rows_per_thread >
              (element_bytes(v.problem()) == 1 ? kMostPacksOfBytes : kMostPacksOfThread);
     }},
    {"rows are not aligned, and so short that most elements lie outside of their packs", kNotMeasured,
     [](const View& v) { return !is_aligned(v.problem()) && v.packs < 8 && columns_of(v.problem()) > 1; }},
    {"a row has too few packs for so many threads", kNotMeasured,
     [](const View& v) { return v.policy.threads_per_row > 1 && v.policy.threads_per_row >= 2 * v.packs; }},
    {"threads load more packs at once than a row has", kNotMeasured,
     [](const View& v) { return v.policy.unroll > 1 && v.at_once >= 2 * v.packs; }},
    {"threads go through a row in several tiles, so one row at once is enough", kNotMeasured,
     [](const View& v) { return v.policy.rows_per_thread > 1 && v.packs > 2 * v.at_once; }},
    {"a row has too many packs for so few threads", kNotMeasured,
     [](const View& v) { return v.policy.threads_per_row < 32 && v.packs > 16 * v.policy.threads_per_row; }},
    {"a row has too many packs for a warp", kNotMeasured,
     [](const View& v) { return v.policy.threads_per_row == 32 && v.packs > 8192; }},
    {"rows of so few threads leave most of the device idle", kNotMeasured,
     [](const View& v) {
       return v.packs > 4 * v.at_once && v.rows * v.policy.threads_per_row < v.facts.sm_count * kThreadsThatFillAnSm;
     }},
}};

constexpr std::array<PruneRule<View>, 7> kBlockRules{{
    {"so many small elements do not fit the registers", kNotMeasured,
     [](const View& v) { return element_bytes(v.problem()) <= 2 && v.policy.unroll > 4; }},
    {"the tile of a block is more than its registers hold", kNotMeasured,
     [](const View& v) { return v.tile > kMostPacksOfBlock; }},
    {"so many rows need no second kernel", kNotMeasured,
     [](const View& v) { return v.policy.scope == Scope::grid && v.rows > kMostSplitRows; }},
    {"the blocks of a row load more packs at once than it has", kNotMeasured,
     [](const View& v) { return v.tile * v.blocks >= 2 * v.packs; }},
    {"the blocks of all rows leave most SMs idle", kNotMeasured,
     [](const View& v) {
       return v.policy.scope != Scope::grid && v.packs > 4 * v.tile * v.blocks &&
              2 * v.rows * v.blocks < v.facts.sm_count;
     }},
    {"there are rows enough for a block each", kNotMeasured,
     [](const View& v) {
       return v.policy.scope != Scope::block && v.rows > kEnoughWaves * v.facts.sm_count && v.packs < 16 * v.tile;
     }},
    {"a block combines its threads too rarely for that to matter", kNotMeasured,
     [](const View& v) { return v.policy.tail != Tail::warp && v.packs > kManyTiles * v.tile * v.blocks; }},
}};

/// Extents {rows, columns, 1}.
class ReduceRowsFamily final : public AxisFamily {
 public:
  ReduceRowsFamily()
      : AxisFamily("reduce_rows", RowsPolicy::space(), {"rows", "columns"}, 1,
                   {"reduce_rows.cuh", "staged_reduce.cuh"}) {}

  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

 protected:
  AxisLayout layout(const Problem& problem) const override {
    return {.outer = rows_of(problem),
            .reduced = columns_of(problem),
            .inner = 1,
            .outer_stride = pitch_of(problem),
            .reduced_stride = 1};
  }
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override;
};

Reason ReduceRowsFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                  const DeviceFacts& facts) const {
  const auto rows = policy.as<RowsPolicy>();
  const Problem& problem = problem_class.typical();
  const std::size_t tail_states = rows.tail == Tail::shared ? rows.block_threads + 2 * rows.cluster_blocks : 0;
  return first_reason({reason_if(problem.extents[2] != 1, "rows have one extent"),
                       check_blocks(facts, rows.block_threads, rows.cluster_blocks),
                       check_static_smem(static_cast<std::int64_t>(tail_states * axis_state_bytes(problem))),
                       rows.is_staged() ? staged_tile(problem, rows).is_valid(problem_class) : Reason()});
}

Reason ReduceRowsFamily::prune(const ProblemClass& problem_class, const Policy& policy,
                               const DeviceFacts& facts) const {
  const View view(problem_class, policy, facts);
  if (Reason reason = pruned_by(kRules, view); !reason.empty()) return reason;
  if (view.policy.is_staged()) return staged_tile(view.problem(), view.policy).prune(problem_class);
  return view.policy.scope == Scope::warp ? pruned_by(kWarpRules, view) : pruned_by(kBlockRules, view);
}

Unit ReduceRowsFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const auto rows = policy.as<RowsPolicy>();
  const int values = values_of(problem);
  Unit unit;
  unit.source = axis_prologue(problem, rows.is_staged() ? "staged_reduce.cuh\"\n#include \"reduce_rows.cuh"
                                                               : "reduce_rows.cuh");
  const std::string bounds = launch_bounds(rows.block_threads, rows.min_blocks);
  const auto lanes = [&](int unroll, int at_once) {
    return fmt::format("using Lanes = hone::RowLanes<Op, {}, {}, {}, {}, {}, Out, {}>;\n", rows.block_threads,
                       rows.threads_per_row, unroll, at_once, is_aligned(problem), values);
  };
  if (rows.is_direct_warp()) {
    unit.source += lanes(rows.unroll, rows.rows_per_thread);
    unit.entries = {kernel_entry("Lanes::reduce", bounds)};
    return unit;
  }
  if (rows.is_staged()) {
    unit.source += staged_tile(problem, rows).source(true, values);
    unit.source += lanes(1, 1);  // for rows with gaps
    unit.entries = {kernel_entry("Kernel::reduce", bounds), kernel_entry("Lanes::reduce", bounds)};
    return unit;
  }
  unit.source += fmt::format("using Kernel = hone::RowBlocks<Op, {}, {}, Out, {}, hone::Tail::{}>;\n",
                             rows.block_threads, rows.unroll, values, kTailNames[static_cast<std::size_t>(rows.tail)]);
  if (rows.scope == Scope::grid) {
    unit.entries = {kernel_entry("Kernel::reduce<hone::Grid::publish>", bounds),
                    combining_entry(combining_block(problem, rows), values)};
  } else {
    unit.entries = {kernel_entry(fmt::format("Kernel::reduce<hone::Grid::none, {}>", rows.cluster_blocks), bounds)};
  }
  return unit;
}

WorkShape ReduceRowsFamily::shape(const Problem& problem, const Policy& policy) const {
  const auto rows = policy.as<RowsPolicy>();
  const std::int64_t packs = std::max<std::int64_t>(1, packs_of_row(problem));
  const std::int64_t count = std::max<std::int64_t>(1, rows_of(problem));
  const std::int64_t tile_packs = std::int64_t{rows.block_threads} * rows.unroll;
  WorkShape shape{.block_threads = rows.block_threads,
                  .dependent_launch = true,
                  .independent_blocks = rows.scope != Scope::grid};
  if (rows.is_staged()) {
    const StagedTile tile = staged_tile(problem, rows);
    shape.tiles = tile.tiles(layout(problem));
    shape.bytes_in_flight_per_block = tile.bytes();
  } else if (rows.scope == Scope::warp) {
    shape.tiles = divide_up(count, rows.tile_rows());
    shape.bytes_in_flight_per_block =
        rows.tile_rows() * std::min<std::int64_t>(packs, std::int64_t{rows.threads_per_row} * rows.unroll) * kMaxAlignment;
  } else if (rows.scope == Scope::grid) {
    shape.tiles = count * divide_up(packs, tile_packs);
    shape.bytes_in_flight_per_block = tile_packs * kMaxAlignment;
    shape.launches = 2;
  } else {
    shape.tiles = count * rows.cluster_blocks;
    shape.bytes_in_flight_per_block = std::min(packs, tile_packs) * kMaxAlignment;
    shape.cluster_blocks = rows.cluster_blocks;
  }
  return shape;
}

std::size_t ReduceRowsFamily::workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const {
  if (candidate.policy.as<RowsPolicy>().scope != Scope::grid) return 0;
  const std::int64_t partials = std::max(candidate.geometry.max_blocks, problem_class.sizes()[0].last);
  return kWorkspaceHeaderBytes + static_cast<std::size_t>(partials) * axis_state_bytes(problem_class.typical());
}

void ReduceRowsFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                              void* workspace, LaunchList& launches) const {
  const auto policy = candidate.policy.as<RowsPolicy>();
  const std::int64_t rows = rows_of(problem), max_blocks = std::max<std::int64_t>(1, candidate.geometry.max_blocks);
  if (policy.is_staged() && !has_gaps(problem))
    return staged_tile(problem, policy).add_launch(launches, layout(problem), max_blocks, buffers);
  const bool is_shared = policy.scope == Scope::grid;
  const auto parts = is_shared ? static_cast<unsigned>(parts_of(problem, candidate)) : 1u;
  std::int64_t blocks = std::min(rows, max_blocks);
  if (is_shared) blocks = rows * parts;
  else if (policy.scope == Scope::warp)
    blocks = std::min(divide_up(rows, policy.tile_rows()), max_blocks);
  else if (policy.scope == Scope::cluster)
    blocks = std::clamp<std::int64_t>(max_blocks / policy.cluster_blocks, 1, std::max<std::int64_t>(1, rows)) *
             policy.cluster_blocks;
  Launch& main = add_launch(launches, blocks, policy.block_threads,
                            RowsArguments{.in = buffers[0],
                                          .out = buffers[1],
                                          .workspace = workspace,
                                          .rows = static_cast<std::uint64_t>(rows),
                                          .columns = static_cast<std::uint64_t>(columns_of(problem)),
                                          .pitch = static_cast<std::uint64_t>(pitch_of(problem)),
                                          .parts = parts});
  main.entry = policy.is_staged() ? 1 : 0;  // rows with gaps cannot be staged
  main.cluster_blocks = static_cast<unsigned>(policy.cluster_blocks);
  if (is_shared)
    add_combining_launch(launches, combining_block(problem, policy), layout(problem), parts, workspace, buffers[1]);
}

std::int64_t ReduceRowsFamily::longest_chain(const Problem& problem, const Candidate& candidate) const {
  const auto policy = candidate.policy.as<RowsPolicy>();
  const std::int64_t packs = packs_of_row(problem);
  const std::int64_t tile_levels = 7;    // of 8 packs of 16 elements
  const std::int64_t block_levels = policy.tail == Tail::warp ? 10 : policy.block_threads / 32 + 32;
  if (policy.is_staged() && pitch_of(problem) == columns_of(problem))
    return staged_tile(problem, policy).chain(layout(problem));
  if (policy.scope == Scope::warp) {
    const std::int64_t unroll = policy.is_staged() ? 1 : policy.unroll;
    const std::int64_t ends = 2 * kMaxAlignment / element_bytes(problem) / policy.threads_per_row + 1;
    return tile_levels + divide_up(packs, policy.threads_per_row * unroll) + unroll + ends + block_levels;
  }
  const std::int64_t parts = policy.scope == Scope::grid ? parts_of(problem, candidate) : policy.cluster_blocks;
  const std::int64_t rounds = divide_up(packs, policy.block_threads * policy.unroll * parts);
  return tile_levels + rounds + policy.unroll + 1 + 2 * block_levels + parts;
}

}  // namespace

const ParameterSpace& RowsPolicy::space() {
  using P = RowsPolicy;
  static const ParameterSpace space = space_of<P>(
      PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
      PolicyField{&P::scope, scope_parameter({Scope::warp, Scope::block, Scope::cluster, Scope::grid})},
      PolicyField{&P::threads_per_row,
                  ordinal("threads_per_row", {1, 2, 4, 8, 16, 32}).only_if("scope", {Scope::warp})},
      PolicyField{&P::staging,
                  staging_parameter({Staging::direct, Staging::shared}).only_if("scope", {Scope::warp})},
      PolicyField{&P::unroll, ordinal("unroll", {1, 2, 4, 8})},
      PolicyField{&P::rows_per_thread, ordinal("rows_per_thread", {1, 2, 4})
                                           .only_if("scope", {Scope::warp})
                                           .only_if("staging", {Staging::direct})
                                           .otherwise(1)},
      PolicyField{&P::cluster_blocks,
                  ordinal("cluster_blocks", {4, 8}).only_if("scope", {Scope::cluster}).otherwise(1)},
      PolicyField{&P::tail, tail_parameter().only_if("scope", {Scope::block, Scope::cluster, Scope::grid})},
      PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::one, MinBlocks::unset})});
  return space;
}

const KernelFamily& reduce_rows_family() {
  static const ReduceRowsFamily family;
  return family;
}

Problem reduce_rows_problem(const ReduceSpec& spec, const RowsShape& shape, std::uint32_t alignment) {
  return axis_problem(reduce_rows_family(), spec, {shape.rows, shape.columns, 1}, shape.pitch, shape.columns,
                      alignment);
}

}  // namespace hone
