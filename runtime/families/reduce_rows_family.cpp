#include "runtime/families/reduce_rows_family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/counts.h"

namespace hone {
namespace {

using Way = RowsPolicy::Way;

constexpr int kBlockThreads = 0, kRowThreads = 1, kUnroll = 2, kRows = 3;

/// The values of the parameter row_threads.
struct RowThreads {
  std::string_view name;
  Way way;
  int lanes = 0;
  int cluster_blocks = 1;
};
constexpr std::array<RowThreads, 13> kRowThreadsValues{{{"1", Way::lanes, 1},
                                                        {"2", Way::lanes, 2},
                                                        {"4", Way::lanes, 4},
                                                        {"8", Way::lanes, 8},
                                                        {"16", Way::lanes, 16},
                                                        {"32", Way::lanes, 32},
                                                        {"block", Way::block},
                                                        {"cluster_4", Way::cluster, 0, 4},
                                                        {"cluster_8", Way::cluster, 0, 8},
                                                        {"split", Way::split},
                                                        {"staged_1", Way::staged, 1},
                                                        {"staged_4", Way::staged, 4},
                                                        {"staged_16", Way::staged, 16}}};

Parameter row_threads_parameter() {
  Parameter parameter{.name = "row_threads", .values = {}};
  for (const RowThreads& value : kRowThreadsValues) {
    parameter.values.push_back(static_cast<std::int32_t>(parameter.values.size()));
    parameter.value_names.push_back(value.name);
  }
  return parameter;
}

/// A thread's packs, over all of its rows, are in registers at once.
constexpr int kMostPacksOfThread = 8;
constexpr int kMostPacksOfBytes = 4;  ///< of 8-bit elements, which take more registers than their packs
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

/// Rows that a block takes at once.
std::int64_t tile_rows(const Problem& problem, const RowsPolicy& policy) {
  if (policy.way == Way::lanes) return policy.block_threads / policy.lanes * policy.rows;
  return policy.way == Way::staged ? std::max<std::int64_t>(1, staged_rows(problem, policy)) : 1;
}

std::int64_t parts_of(const Problem& problem, const Candidate& candidate) {
  const RowsPolicy policy(candidate.policy);
  const std::int64_t tiles = divide_up(packs_of_row(problem), policy.block_threads * policy.unroll);
  return std::clamp<std::int64_t>(candidate.geometry.max_blocks / std::max<std::int64_t>(1, rows_of(problem)), 1,
                                  std::max<std::int64_t>(1, tiles));
}

CombiningBlock combining_block(const Problem& problem, const RowsPolicy& policy) {
  return {policy.block_threads, size_ranges(problem.extents)[0].last};
}

std::string reject_lanes(const Problem& problem, const RowsPolicy& policy, const DeviceFacts& facts) {
  const std::int64_t packs = packs_of_row(problem);
  const std::int64_t at_once = policy.lanes * policy.unroll;
  if (policy.block_threads > 512) return "a block's warps have nothing to tell each other: 512 threads are enough";
  if (policy.unroll * policy.rows > (element_bytes(problem) == 1 ? kMostPacksOfBytes : kMostPacksOfThread))
    return fmt::format("{} packs of {} rows a thread: more than the registers hold", policy.unroll, policy.rows);
  if (!is_aligned(problem) && packs < 8 && columns_of(problem) > 1)
    return "rows are not aligned, and so short that most elements lie outside of their packs";
  if (policy.lanes > 1 && policy.lanes >= 2 * packs)
    return fmt::format("{} threads for the {} packs of a row", policy.lanes, packs);
  if (policy.unroll > 1 && at_once >= 2 * packs)
    return fmt::format("{} threads load {} packs at once, a row has {}", policy.lanes, at_once, packs);
  if (policy.rows > 1 && packs > 2 * at_once)
    return fmt::format("{} threads go through the {} packs of a row one after the other, so one row at once is enough",
                       policy.lanes, packs);
  if (policy.lanes < 32 && packs > 16 * policy.lanes)
    return fmt::format("{} threads for the {} packs of a row", policy.lanes, packs);
  if (policy.lanes == 32 && packs > 8192) return fmt::format("one warp for the {} packs of a row", packs);
  constexpr std::int64_t kThreadsThatFillAnSm = 256;
  if (packs > 4 * at_once && rows_of(problem) * policy.lanes < facts.sm_count * kThreadsThatFillAnSm)
    return fmt::format("{} rows of {} threads leave most of the device idle", rows_of(problem), policy.lanes);
  return "";
}

std::string reject_blocks(const Problem& problem, const RowsPolicy& policy, const DeviceFacts& facts) {
  const std::int64_t packs = packs_of_row(problem);
  const std::int64_t tile = std::int64_t{policy.block_threads} * policy.unroll;
  const std::int64_t rows = rows_of(problem);
  if (policy.rows > 1) return "a block takes one row at once";
  if (element_bytes(problem) <= 2 && policy.unroll > 4) return "so many small elements do not fit the registers";
  if (tile > 4096) return "a tile of so many packs does not fit the registers";
  if (policy.way == Way::cluster && policy.cluster_blocks > std::max(1, facts.max_cluster_blocks))
    return fmt::format("clusters of {} blocks, the device allows {}", policy.cluster_blocks, facts.max_cluster_blocks);
  if (policy.way == Way::split && rows > kMostSplitRows) return fmt::format("{} rows need no second kernel", rows);
  const std::int64_t blocks_of_row = policy.way == Way::split ? 2 : policy.cluster_blocks;
  if (tile * blocks_of_row >= 2 * packs)
    return fmt::format("{} blocks load {} packs at once, a row has {}", blocks_of_row, tile * blocks_of_row, packs);
  if (policy.way != Way::split && packs > 4 * tile * blocks_of_row && 2 * rows * blocks_of_row < facts.sm_count)
    return fmt::format("{} blocks leave most of {} SMs idle", rows * blocks_of_row, facts.sm_count);
  constexpr std::int64_t kEnoughWaves = 8;
  if (policy.way != Way::block && rows > kEnoughWaves * facts.sm_count && packs < 16 * tile)
    return fmt::format("{} rows are enough for a block each", rows);
  return "";
}

std::string reject_staged(const Problem& problem, const RowsPolicy& policy) {
  const std::int64_t columns = columns_of(problem);
  const int tile_bytes = policy.block_threads * policy.unroll * static_cast<int>(kMaxAlignment);
  if (policy.rows > 1) return "a tile has as many rows as fit it";
  if (is_aligned(problem)) return "rows are aligned: they need not be copied to shared memory first";
  if (tile_bytes > kMostTileBytes || tile_bytes < kLeastTileBytes)
    return fmt::format("tiles of {} bytes; {} to {} are worth trying", tile_bytes, kLeastTileBytes, kMostTileBytes);
  if (2 * size_ranges(problem.extents)[1].last > staged_elements(problem, policy))
    return fmt::format("rows of {} columns: less than two fit a tile", columns);
  if (columns > 64 * policy.lanes || (policy.lanes > 1 && columns < 2 * policy.lanes))
    return fmt::format("{} threads for a row of {} columns", policy.lanes, columns);
  return "";
}

}  // namespace

RowsPolicy::RowsPolicy(const Policy& policy)
    : block_threads(policy[kBlockThreads]), unroll(policy[kUnroll]), rows(policy[kRows]) {
  const RowThreads& value = kRowThreadsValues[static_cast<std::size_t>(policy[kRowThreads])];
  way = value.way;
  lanes = value.lanes;
  cluster_blocks = value.cluster_blocks;
}

ReduceRowsFamily::ReduceRowsFamily()
    : space_({{"block_threads", {128, 256, 512, 1024}},
              row_threads_parameter(),
              {"unroll", {1, 2, 4, 8}},
              {"rows", {1, 2, 4}}}) {}

AxisLayout ReduceRowsFamily::layout(const Problem& problem) const {
  return {.outer = rows_of(problem),
          .reduced = columns_of(problem),
          .inner = 1,
          .outer_stride = pitch_of(problem),
          .reduced_stride = 1};
}

std::string ReduceRowsFamily::reject(const Problem& problem, const Policy& policy, const DeviceFacts& facts) const {
  const RowsPolicy rows(policy);
  if (problem.extents[2] != 1) return "rows have one extent";
  if (rows.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", rows.block_threads, facts.max_threads_per_block);
  switch (rows.way) {
    case Way::lanes: return reject_lanes(problem, rows, facts);
    case Way::staged: return reject_staged(problem, rows);
    default: return reject_blocks(problem, rows, facts);
  }
}

Unit ReduceRowsFamily::unit(const Problem& problem, const Policy& policy) const {
  const RowsPolicy rows(policy);
  const int values = values_of(problem);
  Unit unit;
  unit.name = fmt::format("{} index={} {}", to_string(problem), needs_wide_axis(problem) ? 64 : 32,
                          space_.to_string(policy));
  unit.source = axis_prologue(problem, rows.way == Way::staged ? "staged_reduce.cuh\"\n#include \"reduce_rows.cuh"
                                                               : "reduce_rows.cuh");
  const std::string entry =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}) hone_reduce_rows", rows.block_threads);
  constexpr std::string_view kMatrix = "const In* in, unsigned long long rows, Index columns, unsigned long long pitch";
  const auto lanes_entry = [&](std::string_view suffix, int unroll, int at_once) {
    return fmt::format("{}{}({}, Out* out) {{\n  hone::RowLanes<Op, {}, {}, {}, {}, {}, {}>::reduce(in, rows, columns, "
                       "pitch, out);\n}}\n",
                       entry, suffix, kMatrix, rows.block_threads, rows.lanes, unroll, at_once, is_aligned(problem),
                       values);
  };
  unit.entries.emplace_back("hone_reduce_rows");
  if (rows.way == Way::lanes) {
    unit.source += lanes_entry("", rows.unroll, rows.rows);
    return unit;
  }
  if (rows.way == Way::staged) {
    unit.source += fmt::format(
        "using Kernel = hone::StagedReduce<Op, {}, {}, {}, true, {}>;\n"
        "static_assert(Kernel::kTileElements == {}, \"host and device disagree on the tile\");\n"
        "{}(const In* in, unsigned long long rows, unsigned columns, unsigned tile_rows, Out* out) {{\n"
        "  Kernel::reduce(in, rows, columns, 1, tile_rows, out);\n}}\n",
        rows.block_threads, rows.lanes, rows.unroll, values, staged_elements(problem, rows), entry);
    unit.source += lanes_entry("_with_gaps", 1, 1);
    unit.entries.emplace_back("hone_reduce_rows_with_gaps");
    return unit;
  }
  unit.source +=
      fmt::format("using Kernel = hone::RowBlocks<Op, {}, {}, {}>;\n", rows.block_threads, rows.unroll, values);
  if (rows.way == Way::block) {
    unit.source +=
        fmt::format("{}({}, Out* out) {{ Kernel::whole(in, rows, columns, pitch, out); }}\n", entry, kMatrix);
  } else if (rows.way == Way::cluster) {
    unit.source += fmt::format("{}({}, Out* out) {{ Kernel::cluster<{}>(in, rows, columns, pitch, out); }}\n", entry,
                               kMatrix, rows.cluster_blocks);
  } else {
    unit.source += fmt::format(
        "{}({}, unsigned parts, void* workspace) {{\n"
        "  Kernel::publish_parts(in, static_cast<unsigned>(rows), columns, pitch, parts, workspace);\n}}\n",
        entry, kMatrix);
    unit.entries.emplace_back("hone_reduce_rows_finish");
    unit.source += combining_entry(unit.entries.back(), combining_block(problem, rows), values);
  }
  return unit;
}

WorkShape ReduceRowsFamily::shape(const Problem& problem, const Policy& policy) const {
  const RowsPolicy rows(policy);
  const std::int64_t packs = std::max<std::int64_t>(1, packs_of_row(problem));
  const std::int64_t count = std::max<std::int64_t>(1, rows_of(problem));
  const std::int64_t tile_packs = std::int64_t{rows.block_threads} * rows.unroll;
  WorkShape shape{.block_threads = rows.block_threads,
                  .dependent_launch = true,
                  .independent_blocks = rows.way != Way::split};
  switch (rows.way) {
    case Way::lanes: {
      const std::int64_t groups = rows.block_threads / rows.lanes;
      shape.tiles = divide_up(count, groups * rows.rows);
      shape.bytes_in_flight_per_block =
          groups * rows.rows * std::min<std::int64_t>(packs, std::int64_t{rows.lanes} * rows.unroll) * kMaxAlignment;
      break;
    }
    case Way::staged:
      shape.tiles = divide_up(count, tile_rows(problem, rows));
      shape.bytes_in_flight_per_block = tile_packs * kMaxAlignment;
      break;
    case Way::split:
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

std::size_t ReduceRowsFamily::workspace_bytes(const Problem& problem, const Candidate& candidate) const {
  if (RowsPolicy(candidate.policy).way != Way::split) return 0;
  const std::int64_t partials = std::max(candidate.geometry.max_blocks, size_ranges(problem.extents)[0].last);
  return kWorkspaceHeaderBytes + static_cast<std::size_t>(partials) * axis_state_bytes(problem);
}

void ReduceRowsFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                              void* workspace, LaunchList& launches) const {
  const RowsPolicy policy(candidate.policy);
  const std::int64_t rows = rows_of(problem);
  const std::int64_t columns = columns_of(problem);
  const std::int64_t pitch = pitch_of(problem);
  const bool has_gaps = pitch != columns && rows > 1;
  const std::int64_t most_blocks = std::max<std::int64_t>(1, candidate.geometry.max_blocks);

  Launch& main = launches.add();
  main.block.x = static_cast<unsigned>(policy.block_threads);
  main.dependent_launch = true;
  main.arguments.push(buffers[0]);
  main.arguments.push(static_cast<std::uint64_t>(rows));
  // A kernel whose index has 32 bits takes the lower half (all that CUDA runs on is little-endian).
  main.arguments.push(static_cast<std::uint64_t>(columns));
  std::int64_t tiles = divide_up(rows, tile_rows(problem, policy));
  if (policy.way == Way::staged && !has_gaps) {
    main.arguments.push(static_cast<unsigned>(tile_rows(problem, policy)));
  } else {
    main.arguments.push(static_cast<std::uint64_t>(pitch));
    if (policy.way == Way::staged) {
      main.entry = 1;
      tiles = divide_up(rows, policy.block_threads / policy.lanes);
    }
  }
  if (policy.way == Way::cluster) {
    main.cluster_blocks = static_cast<unsigned>(policy.cluster_blocks);
    const std::int64_t clusters =
        std::clamp<std::int64_t>(most_blocks / policy.cluster_blocks, 1, std::max<std::int64_t>(1, rows));
    main.grid.x = static_cast<unsigned>(clusters) * main.cluster_blocks;
  } else {
    main.grid.x = static_cast<unsigned>(std::clamp<std::int64_t>(tiles, 1, most_blocks));
  }
  if (policy.way != Way::split) {
    main.arguments.push(buffers[1]);
    return;
  }
  const auto parts = static_cast<unsigned>(parts_of(problem, candidate));
  main.grid.x = static_cast<unsigned>(std::max<std::int64_t>(1, rows * parts));
  main.arguments.push(parts);
  main.arguments.push(workspace);
  add_combining_launch(launches, combining_block(problem, policy), workspace, parts, rows, columns, buffers[1]);
}

std::int64_t ReduceRowsFamily::longest_chain(const Problem& problem, const Candidate& candidate) const {
  const RowsPolicy policy(candidate.policy);
  const std::int64_t packs = packs_of_row(problem);
  const std::int64_t tile_levels = 7;    // of 8 packs of 16 elements
  const std::int64_t block_levels = 10;  // of 1024 threads
  if (policy.way == Way::staged && pitch_of(problem) == columns_of(problem))
    return 4 + columns_of(problem) / (8 * policy.lanes) + 3 + block_levels;
  if (policy.way == Way::lanes || policy.way == Way::staged) {
    const std::int64_t unroll = policy.way == Way::staged ? 1 : policy.unroll;
    const std::int64_t ends = 2 * pack_elements(problem) / policy.lanes + 1;
    return tile_levels + divide_up(packs, policy.lanes * unroll) + unroll + ends + block_levels;
  }
  const std::int64_t parts = policy.way == Way::split ? parts_of(problem, candidate) : policy.cluster_blocks;
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
