#include "runtime/families/reduce_axis/reduce_rows_family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/reduce_family.h"

namespace hone {
namespace {

/// A thread's packs, over all of its rows, are in registers at once.
constexpr int kMostPacksOfThread = 8;
constexpr int kMostPacksOfBytes = 4;  ///< of 8-bit elements, which take more registers than their packs
constexpr int kMostStaticSmemBytes = 48 * 1024;
constexpr int kMostTileBytes = 32 * 1024;  ///< of a staged tile, so that several blocks of an SM have one
constexpr int kLeastTileBytes = 8 * 1024;

/// More rows than this have no need of several blocks each; what they publish fits the workspace in any case.
constexpr std::int64_t kMostSplitRows = 2048;

std::int64_t rows_of(const Problem& problem) { return problem.extents[0]; }
std::int64_t columns_of(const Problem& problem) { return problem.extents[1]; }
std::int64_t packs_of_row(const Problem& problem) {
  return divide_up(columns_of(problem) * element_bytes(problem), kMaxAlignment);
}
std::int64_t pitch_of(const Problem& problem) {
  return problem.pitches[0] != 0 ? problem.pitches[0] : columns_of(problem);
}
std::int64_t pack_elements(const Problem& problem) { return kMaxAlignment / element_bytes(problem); }

std::int64_t staged_elements(const Problem& problem, const RowsPolicy& policy) {
  return policy.block_threads * policy.unroll * pack_elements(problem);
}
std::int64_t staged_rows(const Problem& problem, const RowsPolicy& policy) {
  return staged_elements(problem, policy) / std::max<std::int64_t>(1, columns_of(problem));
}

/// Of a staged tile.
int tile_bytes_of(const RowsPolicy& policy) {
  return policy.block_threads * policy.unroll * static_cast<int>(kMaxAlignment);
}

/// Rows that a block takes at once.
std::int64_t tile_rows(const Problem& problem, const RowsPolicy& policy) {
  if (policy.is_direct_warp()) return policy.block_threads / policy.threads_per_row * policy.rows_per_thread;
  return policy.is_staged() ? std::max<std::int64_t>(1, staged_rows(problem, policy)) : 1;
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

std::string prune_warp(const Problem& problem, const RowsPolicy& policy, const DeviceFacts& facts) {
  const std::int64_t packs = packs_of_row(problem);
  const std::int64_t at_once = policy.threads_per_row * policy.unroll;
  if (policy.block_threads > 512) return "a block's warps have nothing to tell each other: 512 threads are enough";
  if (policy.unroll * policy.rows_per_thread > (element_bytes(problem) == 1 ? kMostPacksOfBytes : kMostPacksOfThread))
    return fmt::format("{} packs of {} rows a thread: more than the registers hold", policy.unroll,
                       policy.rows_per_thread);
  if (!is_aligned(problem) && packs < 8 && columns_of(problem) > 1)
    return "rows are not aligned, and so short that most elements lie outside of their packs";
  if (policy.threads_per_row > 1 && policy.threads_per_row >= 2 * packs)
    return fmt::format("{} threads for the {} packs of a row", policy.threads_per_row, packs);
  if (policy.unroll > 1 && at_once >= 2 * packs)
    return fmt::format("{} threads load {} packs at once, a row has {}", policy.threads_per_row, at_once, packs);
  if (policy.rows_per_thread > 1 && packs > 2 * at_once)
    return fmt::format("{} threads go through the {} packs of a row one after the other, so one row at once is enough",
                       policy.threads_per_row, packs);
  if (policy.threads_per_row < 32 && packs > 16 * policy.threads_per_row)
    return fmt::format("{} threads for the {} packs of a row", policy.threads_per_row, packs);
  if (policy.threads_per_row == 32 && packs > 8192) return fmt::format("one warp for the {} packs of a row", packs);
  constexpr std::int64_t kThreadsThatFillAnSm = 256;
  if (packs > 4 * at_once && rows_of(problem) * policy.threads_per_row < facts.sm_count * kThreadsThatFillAnSm)
    return fmt::format("{} rows of {} threads leave most of the device idle", rows_of(problem), policy.threads_per_row);
  return "";
}

std::string prune_blocks(const Problem& problem, const RowsPolicy& policy, const DeviceFacts& facts) {
  const std::int64_t packs = packs_of_row(problem);
  const std::int64_t tile = std::int64_t{policy.block_threads} * policy.unroll;
  const std::int64_t rows = rows_of(problem);
  if (element_bytes(problem) <= 2 && policy.unroll > 4) return "so many small elements do not fit the registers";
  if (tile > 4096) return "a tile of so many packs does not fit the registers";
  if (policy.scope == Scope::grid && rows > kMostSplitRows) return fmt::format("{} rows need no second kernel", rows);
  const std::int64_t blocks_of_row = policy.scope == Scope::grid ? 2 : policy.cluster_blocks;
  if (tile * blocks_of_row >= 2 * packs)
    return fmt::format("{} blocks load {} packs at once, a row has {}", blocks_of_row, tile * blocks_of_row, packs);
  if (policy.scope != Scope::grid && packs > 4 * tile * blocks_of_row && 2 * rows * blocks_of_row < facts.sm_count)
    return fmt::format("{} blocks leave most of {} SMs idle", rows * blocks_of_row, facts.sm_count);
  constexpr std::int64_t kEnoughWaves = 8;
  if (policy.scope != Scope::block && rows > kEnoughWaves * facts.sm_count && packs < 16 * tile)
    return fmt::format("{} rows are enough for a block each", rows);
  return "";
}

std::string prune_staged(const ProblemClass& problem_class, const RowsPolicy& policy) {
  const Problem& problem = problem_class.typical();
  const std::int64_t columns = columns_of(problem);
  const int tile_bytes = tile_bytes_of(policy);
  if (policy.threads_per_row != 1 && policy.threads_per_row != 4 && policy.threads_per_row != 16)
    return "1, 4 and 16 threads for a row of a staged tile are enough of a choice";
  if (is_aligned(problem)) return "rows are aligned: they need not be copied to shared memory first";
  if (tile_bytes > kMostTileBytes || tile_bytes < kLeastTileBytes)
    return fmt::format("tiles of {} bytes; {} to {} are worth trying", tile_bytes, kLeastTileBytes, kMostTileBytes);
  if (2 * problem_class.sizes()[1].last > staged_elements(problem, policy))
    return fmt::format("rows of {} columns: less than two fit a tile", columns);
  if (columns > 64 * policy.threads_per_row || (policy.threads_per_row > 1 && columns < 2 * policy.threads_per_row))
    return fmt::format("{} threads for a row of {} columns", policy.threads_per_row, columns);
  return "";
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
      PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::one, MinBlocks::unset})});
  return space;
}

std::span<const SourceFile> ReduceRowsFamily::sources() const {
  static const std::vector<SourceFile> sources = operation_sources({"reduce_rows.cuh", "staged_reduce.cuh"});
  return sources;
}

AxisLayout ReduceRowsFamily::layout(const Problem& problem) const {
  return {.outer = rows_of(problem),
          .reduced = columns_of(problem),
          .inner = 1,
          .outer_stride = pitch_of(problem),
          .reduced_stride = 1};
}

std::string ReduceRowsFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                       const DeviceFacts& facts) const {
  const auto rows = policy.as<RowsPolicy>();
  const Problem& problem = problem_class.typical();
  if (problem.extents[2] != 1) return "rows have one extent";
  if (rows.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", rows.block_threads, facts.max_threads_per_block);
  if (rows.cluster_blocks > std::max(1, facts.max_cluster_blocks))
    return fmt::format("clusters of {} blocks, the device allows {}", rows.cluster_blocks, facts.max_cluster_blocks);
  if (!rows.is_staged()) return "";
  if (tile_bytes_of(rows) + static_cast<int>(kMaxAlignment) > kMostStaticSmemBytes)
    return fmt::format("a tile of {} bytes, a block has {} of static shared memory", tile_bytes_of(rows),
                       kMostStaticSmemBytes);
  if (problem_class.sizes()[1].last > staged_elements(problem, rows))
    return fmt::format("rows of {} columns do not fit a tile of {}", problem_class.sizes()[1].last,
                       staged_elements(problem, rows));
  return "";
}

std::string ReduceRowsFamily::prune(const ProblemClass& problem_class, const Policy& policy,
                                    const DeviceFacts& facts) const {
  const auto rows = policy.as<RowsPolicy>();
  if (rows.min_blocks != MinBlocks::one && is_host(facts)) return "registers are not scarce on this device";
  if (rows.min_blocks != MinBlocks::one && rows.is_staged()) return "a staged tile is in no registers";
  if (rows.is_staged()) return prune_staged(problem_class, rows);
  if (rows.scope == Scope::warp) return prune_warp(problem_class.typical(), rows, facts);
  return prune_blocks(problem_class.typical(), rows, facts);
}

Unit ReduceRowsFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const auto rows = policy.as<RowsPolicy>();
  const int values = values_of(problem);
  Unit unit;
  unit.name = fmt::format("{} index={} {}", to_string(problem_class), needs_wide_axis(problem) ? 64 : 32,
                          space().to_string(policy));
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
    unit.source += fmt::format(
        "using Kernel = hone::StagedReduce<Op, {}, {}, {}, true, Out, {}>;\n"
        "static_assert(Kernel::kTileElements == {}, \"host and device disagree on the tile\");\n",
        rows.block_threads, rows.threads_per_row, rows.unroll, values, staged_elements(problem, rows));
    unit.source += lanes(1, 1);  // for rows with gaps
    unit.entries = {kernel_entry("Kernel::reduce", bounds), kernel_entry("Lanes::reduce", bounds)};
    return unit;
  }
  unit.source +=
      fmt::format("using Kernel = hone::RowBlocks<Op, {}, {}, Out, {}>;\n", rows.block_threads, rows.unroll, values);
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
  switch (rows.scope) {
    case Scope::warp: {
      if (rows.is_staged()) {
        shape.tiles = divide_up(count, tile_rows(problem, rows));
        shape.bytes_in_flight_per_block = tile_packs * kMaxAlignment;
        break;
      }
      const std::int64_t groups = rows.block_threads / rows.threads_per_row;
      shape.tiles = divide_up(count, groups * rows.rows_per_thread);
      shape.bytes_in_flight_per_block =
          groups * rows.rows_per_thread *
          std::min<std::int64_t>(packs, std::int64_t{rows.threads_per_row} * rows.unroll) * kMaxAlignment;
      break;
    }
    case Scope::grid:
      shape.tiles = count * divide_up(packs, tile_packs);
      shape.bytes_in_flight_per_block = tile_packs * kMaxAlignment;
      shape.launches = 2;
      break;
    default:
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
  const std::int64_t rows = rows_of(problem);
  const std::int64_t columns = columns_of(problem);
  const std::int64_t pitch = pitch_of(problem);
  const bool has_gaps = pitch != columns && rows > 1;
  const std::int64_t most_blocks = std::max<std::int64_t>(1, candidate.geometry.max_blocks);

  Launch& main = launches.add();
  main.block.x = static_cast<unsigned>(policy.block_threads);
  main.dependent_launch = true;
  std::int64_t tiles = divide_up(rows, tile_rows(problem, policy));
  const bool is_staged = policy.is_staged() && !has_gaps;
  if (policy.is_staged() && has_gaps) {
    main.entry = 1;
    tiles = divide_up(rows, policy.block_threads / policy.threads_per_row);
  }
  if (policy.scope == Scope::cluster) {
    main.cluster_blocks = static_cast<unsigned>(policy.cluster_blocks);
    const std::int64_t clusters =
        std::clamp<std::int64_t>(most_blocks / policy.cluster_blocks, 1, std::max<std::int64_t>(1, rows));
    main.grid.x = static_cast<unsigned>(clusters) * main.cluster_blocks;
  } else {
    main.grid.x = static_cast<unsigned>(std::clamp<std::int64_t>(tiles, 1, most_blocks));
  }
  if (is_staged) {
    main.arguments.push(StagedArguments{.in = buffers[0],
                                        .out = buffers[1],
                                        .slices = static_cast<std::uint64_t>(rows),
                                        .reduced = static_cast<unsigned>(columns),
                                        .inner = 1,
                                        .slices_per_tile = static_cast<unsigned>(tile_rows(problem, policy))});
    return;
  }
  const bool is_shared = policy.scope == Scope::grid;
  const auto parts = is_shared ? static_cast<unsigned>(parts_of(problem, candidate)) : 1u;
  main.arguments.push(RowsArguments{.in = buffers[0],
                                    .out = buffers[1],
                                    .workspace = workspace,
                                    .rows = static_cast<std::uint64_t>(rows),
                                    .columns = static_cast<std::uint64_t>(columns),
                                    .pitch = static_cast<std::uint64_t>(pitch),
                                    .parts = parts});
  if (!is_shared) return;
  main.grid.x = static_cast<unsigned>(std::max<std::int64_t>(1, rows * parts));
  add_combining_launch(launches, combining_block(problem, policy),
                       {.workspace = workspace,
                        .out = buffers[1],
                        .reduced = static_cast<std::uint64_t>(columns),
                        .parts = parts,
                        .outputs = static_cast<unsigned>(rows)});
}

std::int64_t ReduceRowsFamily::longest_chain(const Problem& problem, const Candidate& candidate) const {
  const auto policy = candidate.policy.as<RowsPolicy>();
  const std::int64_t packs = packs_of_row(problem);
  const std::int64_t tile_levels = 7;    // of 8 packs of 16 elements
  const std::int64_t block_levels = 10;  // of 1024 threads
  if (policy.is_staged() && pitch_of(problem) == columns_of(problem))
    return 4 + columns_of(problem) / (8 * policy.threads_per_row) + 3 + block_levels;
  if (policy.scope == Scope::warp) {
    const std::int64_t unroll = policy.is_staged() ? 1 : policy.unroll;
    const std::int64_t ends = 2 * pack_elements(problem) / policy.threads_per_row + 1;
    return tile_levels + divide_up(packs, policy.threads_per_row * unroll) + unroll + ends + block_levels;
  }
  const std::int64_t parts = policy.scope == Scope::grid ? parts_of(problem, candidate) : policy.cluster_blocks;
  const std::int64_t rounds = divide_up(packs, policy.block_threads * policy.unroll * parts);
  return tile_levels + rounds + policy.unroll + 1 + 2 * block_levels + parts;
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
