#include "runtime/families/reduce_axis/reduce_columns_family.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/reduce_family.h"

namespace hone {
namespace {

/// What the states of a thread's columns may take: 32 registers.
constexpr std::int64_t kMostStateBytes = 128;

/// What the states of a block may take, so that several blocks of an SM have theirs; the most that is static is 48 KiB.
constexpr std::int64_t kMostSharedBytes = 32 * 1024;
constexpr int kMostStaticSmemBytes = 48 * 1024;
constexpr int kMostTileBytes = 32 * 1024;  ///< of a staged tile
constexpr int kLeastTileBytes = 8 * 1024;
constexpr int kLanesOfGaps = 32;  ///< threads side by side in a staged policy's kernel for rows with gaps

/// A thread that takes its rows in so few tiles cannot hide the latency of its loads, other threads must: an SM should
/// hold kEnoughThreads. That leaves each 64 registers, of which what it loads at once and its states may take half;
/// doubles need more for their arithmetic. Only logsumexp takes more than 64 by itself; of the others, compilers that
/// are told of a bound make use of all that it leaves.
constexpr std::int64_t kTooFewTiles = 2;
constexpr int kEnoughThreads = 1024;
constexpr std::int64_t kMostBytesOfMany = 128;

/// Of so few tiles, the first is worth code of its own: f16 logsumexp of 31 x 1048577 24.8 to 23.3 µs, of 4 x 2^24 58.7
/// to 48.6 (H200); of more, code is long enough as it is.
constexpr std::int64_t kFewTiles = 4;

/// Pipeline fill and drain of a block that shares the rows of a tile, in memory latencies: its first and last tiles,
/// and the combination of its threads' States. Each wave of blocks beyond the first makes a call so much longer: 1.8 to
/// 2.5 µs, logsumexp 2.2 to 4.9 (medians of f16 and f32, H100 and H200, CUDA 13.0, 2026-11).
constexpr double kPipelineFillLatencies = 3.5;
constexpr double kPipelineFillLatenciesOfLogsumexp = 6;

/// A tile's row: shorter ones are not worth a memory transaction.
constexpr std::int64_t kLeastRowBytes = 128;

std::int64_t outer_of(const Problem& problem) { return problem.extents[0]; }
std::int64_t reduced_of(const Problem& problem) { return problem.extents[1]; }
std::int64_t inner_of(const Problem& problem) { return problem.extents[2]; }
std::int64_t pitch_of(const Problem& problem) {
  return problem.pitches[0] != 0 ? problem.pitches[0] : inner_of(problem);
}
std::int64_t largest_inner(const Problem& problem) { return size_ranges(problem.extents)[2].last; }

/// How a policy lies on a problem.
struct Tiling {
  bool is_phase_matched;  ///< all rows of a thread have the same alignment
  std::int64_t pack_elements;
  std::int64_t columns;  ///< of a tile
  bool may_fold;         ///< whether several rows fit a tile, in the whole size class
  std::int64_t folds;    ///< rows that are taken as one
  std::int64_t rows;     ///< what is left of the reduced extent then
  std::int64_t slice_tiles;
  std::int64_t tiles;  ///< of all slices

  Tiling(const Problem& problem, const ColumnsPolicy& policy)
      : is_phase_matched(!is_aligned(problem) && policy.staging != Staging::shifted),
        pack_elements(kMaxAlignment / element_bytes(problem)) {
    const auto state_bytes = static_cast<std::int64_t>(axis_state_bytes(problem));
    while (pack_elements > 1 && (pack_elements * state_bytes > kMostStateBytes ||
                                 (is_phase_matched && pack_elements > policy.threads_per_column)))
      pack_elements /= 2;
    const bool shifts = is_phase_matched && pack_elements > 1;
    columns = std::int64_t{policy.lanes() - (shifts ? 1 : 0)} * pack_elements;
    may_fold = 2 * largest_inner(problem) <= columns;
    const std::int64_t inner = std::max<std::int64_t>(1, inner_of(problem));
    folds = may_fold && pitch_of(problem) == inner_of(problem) ? columns / inner : 1;
    rows = divide_up(reduced_of(problem), folds);
    slice_tiles = may_fold ? 1 : divide_up(inner_of(problem), columns);
    tiles = outer_of(problem) * slice_tiles;
  }
};

std::int64_t parts_of(const Problem& problem, const Candidate& candidate) {
  const auto policy = candidate.policy.as<ColumnsPolicy>();
  if (!policy.is_split()) return 1;
  const Tiling tiling(problem, policy);
  return std::clamp<std::int64_t>(candidate.geometry.max_blocks / std::max<std::int64_t>(1, tiling.tiles), 1,
                                  std::max<std::int64_t>(1, divide_up(tiling.rows, policy.threads_per_column)));
}

std::int64_t slice_elements(const Problem& problem) { return reduced_of(problem) * inner_of(problem); }

std::int64_t staged_elements(const Problem& problem, const ColumnsPolicy& policy) {
  return policy.block_threads * policy.unroll * (kMaxAlignment / element_bytes(problem));
}

/// Slices of a staged tile.
std::int64_t staged_slices(const Problem& problem, const ColumnsPolicy& policy) {
  return std::max<std::int64_t>(
      1, staged_elements(problem, policy) / std::max<std::int64_t>(1, slice_elements(problem)));
}

/// Whether a thread takes its rows in at most so many tiles, in the whole size class.
bool takes_tiles_up_to(std::int64_t most, const Problem& problem, const ColumnsPolicy& policy) {
  return !policy.is_split() && size_ranges(problem.extents)[1].last <= most * policy.threads_per_column * policy.unroll;
}

std::string launch_bounds(const Problem& problem, const ColumnsPolicy& policy) {
  const Tiling tiling(problem, policy);
  const auto state_bytes = static_cast<std::int64_t>(axis_state_bytes(problem));
  const std::int64_t bytes = tiling.pack_elements * (policy.unroll * element_bytes(problem) + state_bytes);
  const bool is_few =
      !policy.is_split() && policy.staging == Staging::direct && takes_tiles_up_to(kTooFewTiles, problem, policy);
  const bool fits = bytes <= kMostBytesOfMany && element_bytes(problem) <= 4 &&
                    reduce_spec_of(problem).op == ReduceOp::logsumexp;
  if (!is_few || !fits) return std::to_string(policy.block_threads);
  return fmt::format("{}, {}", policy.block_threads, kEnoughThreads / policy.block_threads);
}

CombiningBlock combining_block(const Problem& problem, const ColumnsPolicy& policy) {
  return {policy.block_threads, largest_inner(problem)};
}

/// Of a staged tile.
int tile_bytes_of(const ColumnsPolicy& policy) {
  return policy.block_threads * policy.unroll * static_cast<int>(kMaxAlignment);
}

std::string invalid_staged(const ProblemClass& problem_class, const ColumnsPolicy& policy) {
  const std::array<SizeRange, 3>& sizes = problem_class.sizes();
  const std::int64_t tile = staged_elements(problem_class.typical(), policy);
  if (policy.threads_per_column > 32) return "an output of a staged tile has at most a warp";
  if (tile_bytes_of(policy) + static_cast<int>(kMaxAlignment) > kMostStaticSmemBytes)
    return fmt::format("a tile of {} bytes, a block has {} of static shared memory", tile_bytes_of(policy),
                       kMostStaticSmemBytes);
  if (sizes[1].last > tile || sizes[2].last > tile || sizes[1].last * sizes[2].last > tile)
    return fmt::format("slices of {} × {} elements do not fit a tile of {}", sizes[1].last, sizes[2].last, tile);
  return "";
}

std::string invalid_direct(const ProblemClass& problem_class, const ColumnsPolicy& policy) {
  const Problem& problem = problem_class.typical();
  if (policy.lanes() < 2) return "each thread has a share of the same column";
  const Tiling tiling(problem, policy);
  if (policy.staging == Staging::shifted) {
    if (is_aligned(problem)) return "rows that begin with a pack need not be shifted";
    if (policy.threads_per_column >= tiling.pack_elements) return "threads whose rows begin alike have whole packs";
    if (tiling.may_fold) return "short rows are no shorter for it";
    if (tiling.pack_elements * element_bytes(problem) < 4) return "packs of less than a word";
  }
  const auto state_bytes = static_cast<std::int64_t>(axis_state_bytes(problem));
  if (policy.threads_per_column * tiling.columns * state_bytes > kMostStaticSmemBytes)
    return fmt::format("the states of {} × {} columns do not fit the shared memory of a block",
                       policy.threads_per_column, tiling.columns);
  return "";
}

std::string prune_staged(const ProblemClass& problem_class, const ColumnsPolicy& policy) {
  const Problem& problem = problem_class.typical();
  if (policy.threads_per_column != 1 && policy.threads_per_column != 4 && policy.threads_per_column != 16)
    return "1, 4 and 16 threads for an output of a staged tile are enough of a choice";
  if (policy.unroll == 16 || tile_bytes_of(policy) > kMostTileBytes || tile_bytes_of(policy) < kLeastTileBytes)
    return fmt::format("tiles of {} bytes; {} to {} are worth trying", tile_bytes_of(policy), kLeastTileBytes,
                       kMostTileBytes);
  if (outer_of(problem) < 2) return "one slice is not worth a copy";
  const std::array<SizeRange, 3>& sizes = problem_class.sizes();
  if (2 * sizes[1].last * sizes[2].last > staged_elements(problem, policy))
    return fmt::format("slices of {} × {} elements: less than two fit a tile", reduced_of(problem), inner_of(problem));
  if (reduced_of(problem) > 64 * policy.threads_per_column ||
      (policy.threads_per_column > 1 && reduced_of(problem) < 2 * policy.threads_per_column))
    return fmt::format("{} threads for the {} elements of an output", policy.threads_per_column, reduced_of(problem));
  return "";
}

std::string prune_direct(const Problem& problem, const ColumnsPolicy& policy, const DeviceFacts& facts) {
  const Tiling tiling(problem, policy);
  const auto state_bytes = static_cast<std::int64_t>(axis_state_bytes(problem));
  if (policy.staging == Staging::shifted && 2 * policy.unroll * tiling.pack_elements * element_bytes(problem) >
                                                8 * kMaxAlignment)
    return "the pairs of a thread's packs do not fit the registers";
  if (policy.threads_per_column * tiling.columns * state_bytes > kMostSharedBytes)
    return fmt::format("the states of {} × {} columns take more than {} bytes of a block's shared memory",
                       policy.threads_per_column, tiling.columns, kMostSharedBytes);
  if (tiling.columns * element_bytes(problem) + kMaxAlignment < kLeastRowBytes)
    return fmt::format("rows of {} elements are not worth a memory transaction", tiling.columns);
  if (element_bytes(problem) <= 2 && policy.unroll > 8 && tiling.pack_elements > 1)
    return "so many small elements do not fit the registers";
  if (policy.unroll * tiling.pack_elements * element_bytes(problem) > 8 * kMaxAlignment)
    return "a thread's packs do not fit the registers";
  if (!tiling.may_fold && 3 * inner_of(problem) < 2 * tiling.columns && policy.lanes() > 8)
    return fmt::format("tiles of {} columns for rows of {}", tiling.columns, inner_of(problem));
  if (policy.threads_per_column > 1 && policy.threads_per_column >= 2 * tiling.rows)
    return fmt::format("{} threads share {} rows", policy.threads_per_column, tiling.rows);
  if (policy.unroll > 2 && policy.threads_per_column * policy.unroll >= 2 * tiling.rows)
    return fmt::format("{} threads load {} packs at once, there are {} rows", policy.threads_per_column, policy.unroll,
                       tiling.rows);
  if (tiling.may_fold && tiling.rows < 2 && outer_of(problem) > 1)
    return fmt::format("slices of {} × {} elements are too small for a block", reduced_of(problem), inner_of(problem));
  const std::int64_t rounds = tiling.rows / (policy.threads_per_column * policy.unroll);
  if (policy.is_split()) {
    if (rounds < 2) return "too few rows to be shared by blocks";
    if (tiling.tiles > 8 * facts.sm_count) return fmt::format("{} tiles are enough for all blocks", tiling.tiles);
  } else if (rounds > 8 && 2 * tiling.tiles < facts.sm_count) {
    return fmt::format("{} tiles leave most of {} SMs idle", tiling.tiles, facts.sm_count);
  }
  return "";
}

}  // namespace

const ParameterSpace& ColumnsPolicy::space() {
  using P = ColumnsPolicy;
  static const ParameterSpace space = space_of<P>(
      PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
      PolicyField{&P::threads_per_column, ordinal("threads_per_column", {1, 2, 4, 8, 16, 32, 64})},
      PolicyField{&P::unroll, ordinal("unroll", {2, 4, 8, 16})},
      PolicyField{&P::scope, scope_parameter({Scope::block, Scope::grid})},
      PolicyField{&P::staging, staging_parameter({Staging::direct, Staging::shared, Staging::shifted})
                                   .only_if("scope", {Scope::block})});
  return space;
}

std::span<const SourceFile> ReduceColumnsFamily::sources() const {
  static const std::vector<SourceFile> sources = operation_sources({"reduce_columns.cuh", "staged_reduce.cuh"});
  return sources;
}

AxisLayout ReduceColumnsFamily::layout(const Problem& problem) const {
  return {.outer = outer_of(problem),
          .reduced = reduced_of(problem),
          .inner = inner_of(problem),
          .outer_stride = reduced_of(problem) * pitch_of(problem),
          .reduced_stride = pitch_of(problem)};
}

std::string ReduceColumnsFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                          const DeviceFacts& facts) const {
  const auto columns = policy.as<ColumnsPolicy>();
  if (columns.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", columns.block_threads, facts.max_threads_per_block);
  return columns.is_staged() ? invalid_staged(problem_class, columns) : invalid_direct(problem_class, columns);
}

std::string ReduceColumnsFamily::prune(const ProblemClass& problem_class, const Policy& policy,
                                       const DeviceFacts& facts) const {
  const auto columns = policy.as<ColumnsPolicy>();
  return columns.is_staged() ? prune_staged(problem_class, columns)
                             : prune_direct(problem_class.typical(), columns, facts);
}

Unit ReduceColumnsFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const auto columns = policy.as<ColumnsPolicy>();
  const Tiling tiling(problem, columns);
  const int values = values_of(problem);
  const std::string bounds = launch_bounds(problem, columns);
  const auto direct = [&](std::int64_t sharing, std::int64_t pack, int unroll, bool folds) {
    const std::string_view starts =
        is_aligned(problem) ? "aligned" : tiling.is_phase_matched ? "phase_matched" : "shifted_loads";
    return fmt::format(
        "using Columns = hone::ColumnReduce<Op, {threads}, {sharing}, {pack}, {unroll}, hone::RowStarts::{starts}, "
        "{folds},\n                                    {few_tiles}, {is_split}, Out, {values}>;\n",
        fmt::arg("threads", columns.block_threads), fmt::arg("sharing", sharing), fmt::arg("pack", pack),
        fmt::arg("unroll", unroll), fmt::arg("starts", starts), fmt::arg("folds", folds),
        fmt::arg("few_tiles", takes_tiles_up_to(kFewTiles, problem, columns)),
        fmt::arg("is_split", columns.is_split()), fmt::arg("values", values));
  };

  Unit unit;
  unit.name = fmt::format("{} index={} {}", to_string(problem_class), needs_wide_axis(problem) ? 64 : 32,
                          space().to_string(policy));
  if (columns.is_staged()) {
    unit.source = axis_prologue(problem, "reduce_columns.cuh\"\n#include \"staged_reduce.cuh");
    unit.source += fmt::format(
        "using Kernel = hone::StagedReduce<Op, {}, {}, {}, false, Out, {}>;\n"
        "static_assert(Kernel::kTileElements == {}, \"host and device disagree on the tile\");\n",
        columns.block_threads, columns.threads_per_column, columns.unroll, values, staged_elements(problem, columns));
    unit.source += direct(columns.block_threads / kLanesOfGaps, 1, 2, false);  // for rows with gaps
    unit.entries = {kernel_entry("Kernel::reduce", bounds), kernel_entry("Columns::reduce", bounds)};
    return unit;
  }
  unit.source = axis_prologue(problem, "reduce_columns.cuh");
  unit.source += direct(columns.threads_per_column, tiling.pack_elements, columns.unroll, tiling.may_fold);
  unit.source += fmt::format("static_assert(Columns::kTileColumns == {}, \"host and device disagree on the tile\");\n",
                             tiling.columns);
  unit.entries = {kernel_entry("Columns::reduce", bounds)};
  if (columns.is_split()) unit.entries.push_back(combining_entry(combining_block(problem, columns), values));
  return unit;
}

WorkShape ReduceColumnsFamily::shape(const Problem& problem, const Policy& policy) const {
  const auto columns = policy.as<ColumnsPolicy>();
  const Tiling tiling(problem, columns);
  WorkShape shape{.block_threads = columns.block_threads,
                  .dependent_launch = true,
                  .independent_blocks = !columns.is_split()};
  if (columns.is_staged()) {
    shape.tiles = std::max<std::int64_t>(1, divide_up(outer_of(problem), staged_slices(problem, columns)));
    shape.bytes_in_flight_per_block = std::int64_t{columns.block_threads} * columns.unroll * kMaxAlignment;
    return shape;
  }
  const std::int64_t tile_rows = std::int64_t{columns.threads_per_column} * columns.unroll;
  shape.tiles = std::max<std::int64_t>(1, tiling.tiles);
  if (columns.is_split()) {
    shape.tiles *= std::max<std::int64_t>(1, divide_up(tiling.rows, tile_rows));
    shape.launches = 2;
    shape.pipeline_fill_latencies = reduce_spec_of(problem).op == ReduceOp::logsumexp
                                        ? kPipelineFillLatenciesOfLogsumexp
                                        : kPipelineFillLatencies;
  }
  const std::int64_t used_columns = std::min(tiling.columns, tiling.folds * inner_of(problem));
  shape.bytes_in_flight_per_block = std::max<std::int64_t>(
      1, std::min(tile_rows, tiling.rows) * used_columns * element_bytes(problem));
  return shape;
}

std::size_t ReduceColumnsFamily::workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const {
  const Problem& problem = problem_class.typical();
  const auto columns = candidate.policy.as<ColumnsPolicy>();
  if (!columns.is_split()) return 0;
  // A block's outputs are those of its tile, whatever the shape: this holds for the whole size class.
  const std::int64_t outputs = std::min(Tiling(problem, columns).columns, largest_inner(problem));
  return kWorkspaceHeaderBytes +
         static_cast<std::size_t>(candidate.geometry.max_blocks * outputs) * axis_state_bytes(problem);
}

void ReduceColumnsFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                                 void* workspace, LaunchList& launches) const {
  const auto columns = candidate.policy.as<ColumnsPolicy>();
  const std::int64_t most_blocks = std::max<std::int64_t>(1, candidate.geometry.max_blocks);
  const bool has_gaps = pitch_of(problem) != inner_of(problem);
  const auto grid = [&](std::int64_t tiles) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(tiles, 1, most_blocks));
  };

  Launch& main = launches.add();
  main.block.x = static_cast<unsigned>(columns.block_threads);
  main.dependent_launch = true;
  if (columns.is_staged() && !has_gaps) {
    const std::int64_t slices = staged_slices(problem, columns);
    main.grid.x = grid(divide_up(outer_of(problem), slices));
    main.arguments.push(StagedArguments{.in = buffers[0],
                                        .out = buffers[1],
                                        .slices = static_cast<std::uint64_t>(outer_of(problem)),
                                        .reduced = static_cast<unsigned>(reduced_of(problem)),
                                        .inner = static_cast<unsigned>(inner_of(problem)),
                                        .slices_per_tile = static_cast<unsigned>(slices)});
    return;
  }
  Tiling tiling(problem, columns);
  const auto parts = static_cast<unsigned>(parts_of(problem, candidate));
  if (columns.is_staged()) {  // rows with gaps cannot be staged
    main.entry = 1;
    tiling.rows = reduced_of(problem);
    tiling.folds = 1;
    tiling.slice_tiles = divide_up(inner_of(problem), kLanesOfGaps);
    tiling.tiles = outer_of(problem) * tiling.slice_tiles;
  }
  main.grid.x = grid(tiling.tiles * parts);
  main.arguments.push(ColumnsArguments{
      .in = buffers[0],
      .out = buffers[1],
      .workspace = workspace,
      .outer = static_cast<std::uint64_t>(outer_of(problem)),
      .reduced = static_cast<std::uint64_t>(reduced_of(problem)),
      .inner = static_cast<std::uint64_t>(inner_of(problem)),
      .pitch = static_cast<std::uint64_t>(pitch_of(problem)),
      .slice_pitch = static_cast<std::uint64_t>(reduced_of(problem) * pitch_of(problem)),
      .rows = static_cast<std::uint64_t>(tiling.rows),
      .slice_tiles = static_cast<std::uint64_t>(tiling.slice_tiles),
      .folds = static_cast<unsigned>(tiling.folds),
      .parts = parts});
  if (parts > 1)
    add_combining_launch(launches, combining_block(problem, columns),
                         {.workspace = workspace,
                          .out = buffers[1],
                          .reduced = static_cast<std::uint64_t>(reduced_of(problem)),
                          .parts = parts,
                          .outputs = static_cast<unsigned>(outer_of(problem) * inner_of(problem))});
}

std::int64_t ReduceColumnsFamily::longest_chain(const Problem& problem, const Candidate& candidate) const {
  const auto columns = candidate.policy.as<ColumnsPolicy>();
  const std::int64_t block_levels = 10;
  if (columns.is_staged() && pitch_of(problem) == inner_of(problem))
    return 4 + reduced_of(problem) / (8 * columns.threads_per_column) + 3 + block_levels;
  if (columns.is_staged()) return reduced_of(problem);
  const Tiling tiling(problem, columns);
  const std::int64_t parts = parts_of(problem, candidate);
  const std::int64_t rounds = divide_up(tiling.rows, parts * columns.threads_per_column * columns.unroll);
  const std::int64_t unrolled = 4 + columns.unroll;    // levels, and the last rows one after the other
  const std::int64_t ends = 2 * tiling.pack_elements;  // rows that are taken one by one
  return unrolled + rounds + columns.threads_per_column + ends + tiling.folds + parts + block_levels;
}

const KernelFamily& reduce_columns_family() {
  static const ReduceColumnsFamily family;
  return family;
}

Problem reduce_columns_problem(const ReduceSpec& spec, const ColumnsShape& shape, std::uint32_t alignment) {
  if (shape.inner == 1 && (shape.pitch == 0 || shape.pitch == 1))
    return reduce_rows_problem(spec, {.rows = shape.outer, .columns = shape.reduced}, alignment);
  return axis_problem(reduce_columns_family(), spec, {shape.outer, shape.reduced, shape.inner}, shape.pitch,
                      shape.inner, alignment);
}

}  // namespace hone
