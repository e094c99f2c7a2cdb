#include "runtime/families/reduce_axis/reduce_columns_family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce_axis/axis_family.h"

namespace hone {
namespace {

/// What the states of a thread's columns may take: 32 registers.
constexpr std::int64_t kMostStateBytes = 128;

/// What the states of a block may take, so that several blocks of an SM have theirs; the most that is static is 48 KiB.
constexpr std::int64_t kMostSharedBytes = 32 * 1024;
constexpr int kLanesOfGaps = 32;  ///< threads side by side in a staged policy's kernel for rows with gaps

/// A thread that takes its rows in so few tiles cannot hide the latency of its loads, other threads must: an SM should
/// hold 1024. That leaves each 64 registers, of which what it loads at once and its states may take half; doubles need
/// more for their arithmetic. Only logsumexp takes more than 64 by itself.
constexpr std::int64_t kTooFewTiles = 2;
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
    columns = std::max(1, policy.lanes() - (shifts ? 1 : 0)) * pack_elements;
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

StagedTile staged_tile(const Problem& problem, const ColumnsPolicy& policy) {
  return {problem, policy.block_threads, policy.threads_per_column, policy.unroll};
}

/// Whether a thread takes its rows in at most so many tiles, in the whole size class.
bool takes_tiles_up_to(std::int64_t most, const Problem& problem, const ColumnsPolicy& policy) {
  return !policy.is_split() && size_ranges(problem.extents)[1].last <= most * policy.threads_per_column * policy.unroll;
}

CombiningBlock combining_block(const Problem& problem, const ColumnsPolicy& policy) {
  return {policy.block_threads, largest_inner(problem)};
}

struct View : PolicyView<ColumnsPolicy> {
  using PolicyView::PolicyView;

  Tiling tiling{problem(), policy};
  std::int64_t element = element_bytes(problem());
  std::int64_t state = static_cast<std::int64_t>(axis_state_bytes(problem()));
  std::int64_t pack_bytes = tiling.pack_elements * element;
  std::int64_t tile_rows = std::int64_t{policy.threads_per_column} * policy.unroll;
  std::int64_t rounds = tiling.rows / tile_rows;

  std::int64_t states_bytes() const { return policy.threads_per_column * tiling.columns * state; }

  /// Whether other threads must hide the latency of a thread's loads, it takes more than 64 registers by itself, and the
  /// bound that makes room for them spills nothing.
  bool wants_1024_threads() const {
    return reduce_spec_of(problem()).op == ReduceOp::logsumexp && policy.scope == Scope::block &&
           policy.staging == Staging::direct && takes_tiles_up_to(kTooFewTiles, problem(), policy) &&
           tiling.pack_elements * (policy.unroll * element + state) <= kMostBytesOfMany && element <= 4;
  }
};

constexpr std::array<PruneRule<View>, 5> kBoundsRules{{
    kNoLaunchBounds<View>,
    {"a staged tile is in no registers", "the same loads in flight, through cp.async",
     [](const View& v) { return v.policy.min_blocks != MinBlocks::unset && v.policy.is_staged(); }},
    {"the loads of a thread of few packs, or of 1024 threads, are in flight in any case",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-24, pairs of units of f32: with min_blocks=1 all of 8 or 16 loads are in "
     "flight where up to 2 wait otherwise in 16 of 32, of 4 loads in 5 of 13 (by one, of shifted ones by two), of 2 "
     "in none that was looked at; 1024 threads have 64 registers either way. 8192 x 8192 floats by the best policies "
     "with 1, 1024_threads and unset: 100.0, 100.2, 100.7 % (H100, parameter_effects_shapes)",
     [](const View& v) {
       const int packs = v.policy.unroll * (v.policy.staging == Staging::shifted ? 2 : 1);
       return v.policy.min_blocks == MinBlocks::one && (packs < 8 || v.policy.block_threads > 512);
     }},
    {"a thread has loads enough of its own, or takes no more registers than 1024 threads leave", kNotMeasured,
     [](const View& v) { return v.policy.min_blocks == MinBlocks::one_half && !v.wants_1024_threads(); }},
    {"threads of few tiles want 1024 of them on an SM", kNotMeasured,
     [](const View& v) {
       return v.policy.min_blocks != MinBlocks::one_half && v.wants_1024_threads() && !is_host(v.facts);
     }},
}};

constexpr std::array<PruneRule<View>, 2> kStagedRules{{
    {"16 packs of a thread are too many for a staged tile", kNotMeasured,
     [](const View& v) { return v.policy.unroll == 16; }},
    {"one slice is not worth a copy", kNotMeasured, [](const View& v) { return outer_of(v.problem()) < 2; }},
}};

constexpr std::array<PruneRule<View>, 12> kDirectRules{{
    {"the pairs of a thread's packs do not fit the registers", kNotMeasured,
     [](const View& v) {
       return v.policy.staging == Staging::shifted && 2 * v.policy.unroll * v.pack_bytes > 8 * kMaxAlignment;
     }},
    {"the states of a tile's columns leave shared memory for too few blocks", kNotMeasured,
     [](const View& v) { return v.states_bytes() > kMostSharedBytes; }},
    {"the rows of a tile are not worth a memory transaction", kNotMeasured,
     [](const View& v) { return v.tiling.columns * v.element + kMaxAlignment < kLeastRowBytes; }},
    {"so many small elements do not fit the registers", kNotMeasured,
     [](const View& v) { return v.element <= 2 && v.policy.unroll > 8 && v.tiling.pack_elements > 1; }},
    {"a thread's packs do not fit the registers", kNotMeasured,
     [](const View& v) { return v.policy.unroll * v.pack_bytes > 8 * kMaxAlignment; }},
    {"a tile has more columns than rows are long", kNotMeasured,
     [](const View& v) {
       return !v.tiling.may_fold && 3 * inner_of(v.problem()) < 2 * v.tiling.columns && v.policy.lanes() > 8;
     }},
    {"there are too few rows for so many threads", kNotMeasured,
     [](const View& v) { return v.policy.threads_per_column > 1 && v.policy.threads_per_column >= 2 * v.tiling.rows; }},
    {"threads load more rows at once than there are", kNotMeasured,
     [](const View& v) { return v.policy.unroll > 2 && v.tile_rows >= 2 * v.tiling.rows; }},
    {"slices are too small for a block", kNotMeasured,
     [](const View& v) { return v.tiling.may_fold && v.tiling.rows < 2 && outer_of(v.problem()) > 1; }},
    {"there are too few rows to be shared by blocks", kNotMeasured,
     [](const View& v) { return v.policy.is_split() && v.rounds < 2; }},
    {"there are tiles enough for all blocks", kNotMeasured,
     [](const View& v) { return v.policy.is_split() && v.tiling.tiles > 8 * v.facts.sm_count; }},
    {"the tiles leave most SMs idle", kNotMeasured,
     [](const View& v) { return !v.policy.is_split() && v.rounds > 8 && 2 * v.tiling.tiles < v.facts.sm_count; }},
}};

/// Extents {outer, reduced, inner}.
class ReduceColumnsFamily final : public AxisFamily {
 public:
  ReduceColumnsFamily()
      : AxisFamily("reduce_columns", ColumnsPolicy::space(), {"outer", "reduced", "inner"}, 2,
                   {"reduce_columns.cuh", "staged_reduce.cuh"}) {}

  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

 protected:
  AxisLayout layout(const Problem& problem) const override {
    return {.outer = outer_of(problem),
            .reduced = reduced_of(problem),
            .inner = inner_of(problem),
            .outer_stride = reduced_of(problem) * pitch_of(problem),
            .reduced_stride = pitch_of(problem)};
  }
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override;
};

Reason ReduceColumnsFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                     const DeviceFacts& facts) const {
  const View view(problem_class, policy, facts);
  const ColumnsPolicy& columns = view.policy;
  const Problem& problem = view.problem();
  if (Reason reason = check_blocks(facts, columns.block_threads); !reason.empty()) return reason;
  if (columns.is_staged()) return staged_tile(problem, columns).is_valid(problem_class);
  const bool shifts = columns.staging == Staging::shifted;
  return first_reason(
      {reason_if(columns.lanes() < 2, "each thread has a share of the same column"),
       reason_if(shifts && is_aligned(problem), "rows that begin with a pack need not be shifted"),
       reason_if(shifts && columns.threads_per_column >= view.tiling.pack_elements,
                 "threads whose rows begin alike have whole packs"),
       reason_if(shifts && view.tiling.may_fold, "short rows are no shorter for it"),
       reason_if(shifts && view.pack_bytes < 4, "packs of less than a word"), check_static_smem(view.states_bytes())});
}

Reason ReduceColumnsFamily::prune(const ProblemClass& problem_class, const Policy& policy,
                                  const DeviceFacts& facts) const {
  const View view(problem_class, policy, facts);
  if (Reason reason = pruned_by(kBoundsRules, view); !reason.empty()) return reason;
  if (!view.policy.is_staged()) return pruned_by(kDirectRules, view);
  return first_reason({pruned_by(kStagedRules, view), staged_tile(view.problem(), view.policy).prune(problem_class)});
}

Unit ReduceColumnsFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const auto columns = policy.as<ColumnsPolicy>();
  const Tiling tiling(problem, columns);
  const int values = values_of(problem);
  const std::string bounds = launch_bounds(columns.block_threads, columns.min_blocks);
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
  if (columns.is_staged()) {
    unit.source = axis_prologue(problem, "reduce_columns.cuh\"\n#include \"staged_reduce.cuh");
    unit.source += staged_tile(problem, columns).source(false, values);
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
    const StagedTile tile = staged_tile(problem, columns);
    shape.tiles = tile.tiles(layout(problem));
    shape.bytes_in_flight_per_block = tile.bytes();
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
  if (columns.is_staged() && !has_gaps)
    return staged_tile(problem, columns).add_launch(launches, layout(problem), most_blocks, buffers);
  Tiling tiling(problem, columns);
  const auto parts = static_cast<unsigned>(parts_of(problem, candidate));
  if (columns.is_staged()) {  // rows with gaps cannot be staged
    tiling.rows = reduced_of(problem);
    tiling.folds = 1;
    tiling.slice_tiles = divide_up(inner_of(problem), kLanesOfGaps);
    tiling.tiles = outer_of(problem) * tiling.slice_tiles;
  }
  const ColumnsArguments arguments{
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
      .parts = parts};
  add_launch(launches, std::min(tiling.tiles * parts, most_blocks), columns.block_threads, arguments).entry =
      columns.is_staged() ? 1 : 0;
  if (parts > 1)
    add_combining_launch(launches, combining_block(problem, columns), layout(problem), parts, workspace, buffers[1]);
}

std::int64_t ReduceColumnsFamily::longest_chain(const Problem& problem, const Candidate& candidate) const {
  const auto columns = candidate.policy.as<ColumnsPolicy>();
  const std::int64_t block_levels = 10;
  if (columns.is_staged() && pitch_of(problem) == inner_of(problem))
    return staged_tile(problem, columns).chain(layout(problem));
  if (columns.is_staged()) return reduced_of(problem);
  const Tiling tiling(problem, columns);
  const std::int64_t parts = parts_of(problem, candidate);
  const std::int64_t rounds = divide_up(tiling.rows, parts * columns.threads_per_column * columns.unroll);
  const std::int64_t unrolled = 4 + columns.unroll;    // levels, and the last rows one after the other
  const std::int64_t ends = 2 * tiling.pack_elements;  // rows that are taken one by one
  return unrolled + rounds + columns.threads_per_column + ends + tiling.folds + parts + block_levels;
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
                                   .only_if("scope", {Scope::block})},
      PolicyField{&P::min_blocks,
                  min_blocks_parameter({MinBlocks::unset, MinBlocks::one, MinBlocks::one_half})});
  return space;
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
