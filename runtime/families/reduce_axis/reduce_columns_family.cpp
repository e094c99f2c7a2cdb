#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/reduce_axis/canonical_columns.h"
#include "runtime/families/reduce_axis/columns_layout.h"

namespace hone {
namespace {

/// The most that the states of a block may take, so that several blocks fit an SM; static shared memory ends at 48 KiB.
constexpr std::int64_t kMostSharedBytes = 32 * 1024;
constexpr int kLanesOfGaps = 32;  ///< threads side by side in a staged policy's kernel for rows with gaps

/// A thread that takes its rows in so few tiles cannot hide the latency of its loads, other threads must: an SM should
/// hold 1024. That leaves each 64 registers, of which what it loads at once and its states may take half; doubles need
/// more for their arithmetic. Only logsumexp takes more than 64 by itself.
constexpr std::int64_t kTooFewTiles = 2;
constexpr std::int64_t kMostBytesOfMany = 128;

/// With so few tiles, the first is worth code of its own: f16 logsumexp of 31 x 1048577 24.8 to 23.3 µs, of 4 x 2^24
/// 58.7 to 48.6 (H200); with more, code is long enough as it is.
constexpr std::int64_t kFewTiles = 4;

/// Pipeline fill and drain of a block that shares the rows of a tile, in memory latencies: its first and last tiles,
/// and the combination of its threads' States. Each wave of blocks beyond the first makes a call so much longer: 1.8 to
/// 2.5 µs, logsumexp 2.2 to 4.9 (medians of f16 and f32, H100 and H200, CUDA 13.0, 2026-11).
constexpr double kPipelineFillLatencies = 3.5;
constexpr double kPipelineFillLatenciesOfLogsumexp = 6;

/// A tile's row: shorter ones are not worth a memory transaction.
constexpr std::int64_t kLeastRowBytes = 128;

using Layout = ColumnsLayout;

struct View : PolicyView<Layout> {
  using PolicyView::PolicyView;

  std::int64_t pack_bytes = pack_elements * element;
  std::int64_t rounds = rows / tile_rows;

  std::int64_t states_bytes() const { return threads_per_column * columns * state; }

  /// True if other threads must hide the latency of a thread's loads, it takes more than 64 registers by itself, and
  /// the bound that makes room for them spills nothing.
  bool wants_1024_threads() const {
    return reduce_spec_of(problem).op == ReduceOp::logsumexp && scope == Scope::block && staging == Staging::direct &&
           takes_tiles_up_to(kTooFewTiles) && pack_elements * (unroll * element + state) <= kMostBytesOfMany &&
           element <= 4;
  }
};

constexpr std::array<PruneRule<View>, 5> kBoundsRules{{
    kNoLaunchBounds<View, MinBlocks::unset>,
    {"a staged tile is in no registers", "the same loads in flight, through cp.async",
     [](const View& v) { return v.min_blocks != MinBlocks::unset && v.is_staged(); }},
    {"the loads of a thread of few packs, or of 1024 threads, are in flight in any case",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-24, pairs of units of f32: with min_blocks=1 all of 8 or 16 loads are in "
     "flight where up to 2 wait otherwise in 16 of 32, of 4 loads in 5 of 13 (by one, of shifted ones by two), of 2 "
     "in none that was looked at; 1024 threads have 64 registers either way. 8192 x 8192 floats by the best policies "
     "with 1, 1024_threads and unset: 100.0, 100.2, 100.7 % (H100, parameter_effects_shapes)",
     [](const View& v) {
       const int packs = v.unroll * (v.staging == Staging::shifted ? 2 : 1);
       return v.min_blocks == MinBlocks::one && (packs < 8 || v.block_threads > 512);
     }},
    {"a thread has loads enough of its own, or takes no more registers than 1024 threads leave", "99.8 % (H100, prune_rules)",
     [](const View& v) { return v.min_blocks == MinBlocks::one_half && !v.wants_1024_threads(); }},
    {"threads of few tiles want 1024 of them on an SM", kNotMeasured,
     [](const View& v) { return v.min_blocks != MinBlocks::one_half && v.wants_1024_threads() && !is_host(v.facts); }},
}};

constexpr std::array<PruneRule<View>, 2> kStagedRules{{
    {"16 packs of a thread are too many for a staged tile", kNotMeasured, [](const View& v) { return v.unroll == 16; }},
    {"one slice is not worth a copy", kNotMeasured, [](const View& v) { return v.axis.outer < 2; }},
}};

constexpr std::array<PruneRule<View>, 12> kDirectRules{{
    {"the pairs of a thread's packs do not fit the registers", "247 times as slow (H100, prune_rules)",
     [](const View& v) { return v.staging == Staging::shifted && 2 * v.unroll * v.pack_bytes > 8 * kMaxAlignment; }},
    {"the states of a tile's columns leave shared memory for too few blocks", kNotMeasured,
     [](const View& v) { return v.states_bytes() > kMostSharedBytes; }},
    {"the rows of a tile are not worth a memory transaction", "108.5 % (H100, prune_rules)",
     [](const View& v) { return v.columns * v.element + kMaxAlignment < kLeastRowBytes; }},
    {"so many small elements do not fit the registers", "100.6 % (H100, prune_rules)",
     [](const View& v) { return v.element <= 2 && v.unroll > 8 && v.pack_elements > 1; }},
    {"a thread's packs do not fit the registers", "99.7 % (H100, prune_rules)",
     [](const View& v) { return v.unroll * v.pack_bytes > 8 * kMaxAlignment; }},
    {"a tile has more columns than rows are long", "102.6 % (H100, prune_rules)",
     [](const View& v) { return !v.may_fold && 3 * v.axis.inner < 2 * v.columns && v.lanes() > 8; }},
    {"there are too few rows for so many threads", kNotMeasured,
     [](const View& v) { return v.threads_per_column > 1 && v.threads_per_column >= 2 * v.rows; }},
    {"threads load more rows at once than there are", kNotMeasured,
     [](const View& v) { return v.unroll > 2 && v.tile_rows >= 2 * v.rows; }},
    {"slices are too small for a block", kNotMeasured,
     [](const View& v) { return v.may_fold && v.rows < 2 && v.axis.outer > 1; }},
    {"there are too few rows to be shared by blocks", kNotMeasured,
     [](const View& v) { return v.is_split() && v.rounds < 2; }},
    {"there are tiles enough for all blocks", kNotMeasured,
     [](const View& v) { return v.is_split() && v.tiles > 8 * v.facts.sm_count; }},
    {"the tiles leave most SMs idle", "102.6 % (H100, prune_rules)",
     [](const View& v) { return !v.is_split() && v.rounds > 8 && 2 * v.tiles < v.facts.sm_count; }},
}};

/// Extents {outer, reduced, inner}.
class ReduceColumnsFamily final : public AxisFamily {
 public:
  ReduceColumnsFamily()
      : AxisFamily("reduce_columns", ColumnsPolicy::space(), {"outer", "reduced", "inner"}, 2,
                   {"reduce_columns.cuh", "staged_reduce.cuh", "canonical_columns.cuh"}) {}

  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override {
    if (is_canonical(problem_class.typical())) return CanonicalColumns(problem_class.typical(), policy).is_valid(facts);
    const View view(problem_class, policy, facts);
    if (Reason reason = check_blocks(facts, view.block_threads); !reason.empty()) return reason;
    if (view.is_staged()) return view.staged_tile().is_valid(problem_class);
    const bool shifts = view.staging == Staging::shifted;
    return first_reason(
        {reason_if(view.lanes() < 2, "each thread has a share of the same column"),
         reason_if(shifts && is_aligned(view.problem), "rows that begin with a pack need not be shifted"),
         reason_if(shifts && view.threads_per_column >= view.pack_elements,
                   "threads whose rows begin alike have whole packs"),
         reason_if(shifts && view.may_fold, "short rows are no shorter for it"),
         reason_if(shifts && view.pack_bytes < 4, "packs of less than a word"),
         check_static_smem(view.states_bytes())});
  }

  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override {
    if (is_canonical(problem_class.typical())) return CanonicalColumns::prune(problem_class, policy, facts);
    const View view(problem_class, policy, facts);
    if (Reason reason = pruned_by(kBoundsRules, view); !reason.empty()) return reason;
    if (!view.is_staged()) return pruned_by(kDirectRules, view);
    return first_reason({pruned_by(kStagedRules, view), view.staged_tile().prune(problem_class)});
  }

  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override {
    const Problem& problem = problem_class.typical();
    if (is_canonical(problem)) return CanonicalColumns(problem, policy).unit();
    const Layout layout(problem, policy);
    const int values = values_of(problem);
    const auto entry = [&](std::string_view body) {
      return kernel_entry(body, layout.block_threads, layout.min_blocks);
    };
    const auto direct = [&](std::int64_t sharing, std::int64_t pack, int unroll, bool folds) {
      const std::string_view starts = is_aligned(problem)       ? "aligned"
                                      : layout.is_phase_matched ? "phase_matched"
                                                                : "shifted_loads";
      return fmt::format(
          "using Columns = hone::ColumnReduce<Op, {threads}, {sharing}, {pack}, {unroll}, hone::RowStarts::{starts}, "
          "{folds},\n                                    {few_tiles}, {is_split}, Out, {values}>;\n",
          fmt::arg("threads", layout.block_threads), fmt::arg("sharing", sharing), fmt::arg("pack", pack),
          fmt::arg("unroll", unroll), fmt::arg("starts", starts), fmt::arg("folds", folds),
          fmt::arg("few_tiles", layout.takes_tiles_up_to(kFewTiles)), fmt::arg("is_split", layout.is_split()),
          fmt::arg("values", values));
    };
    if (layout.is_staged())  // Columns take rows with gaps
      return unit_of(axis_prologue(problem, "reduce_columns.cuh\"\n#include \"staged_reduce.cuh") +
                         layout.staged_tile().source(false, values) +
                         direct(layout.block_threads / kLanesOfGaps, 1, 2, false),
                     {entry("Kernel::reduce"), entry("Columns::reduce")});
    Unit unit = unit_of(axis_prologue(problem, "reduce_columns.cuh") +
                            direct(layout.threads_per_column, layout.pack_elements, layout.unroll, layout.may_fold),
                        {entry("Columns::reduce")});
    unit.source += fmt::format(
        "static_assert(Columns::kTileColumns == {}, \"host and device disagree on the tile\");\n", layout.columns);
    if (layout.is_split()) unit.entries.push_back(combining_entry(layout.combining_block(), values));
    return unit;
  }

  WorkShape shape(const Problem& problem, const Policy& policy) const override {
    if (is_canonical(problem)) return CanonicalColumns(problem, policy).shape();
    const Layout layout(problem, policy);
    WorkShape shape{
        .block_threads = layout.block_threads, .dependent_launch = true, .independent_blocks = !layout.is_split()};
    if (layout.is_staged()) {
      const StagedTile tile = layout.staged_tile();
      shape.tiles = tile.tiles(layout.axis);
      shape.bytes_in_flight_per_block = tile.bytes();
      return shape;
    }
    shape.tiles = at_least_one(layout.tiles);
    if (layout.is_split()) {
      shape.tiles *= at_least_one(divide_up(layout.rows, layout.tile_rows));
      shape.launches = 2;
      shape.pipeline_fill_latencies = reduce_spec_of(problem).op == ReduceOp::logsumexp
                                          ? kPipelineFillLatenciesOfLogsumexp
                                          : kPipelineFillLatencies;
    }
    const std::int64_t used_columns = std::min(layout.columns, layout.folds * layout.axis.inner);
    shape.bytes_in_flight_per_block =
        at_least_one(std::min(layout.tile_rows, layout.rows) * used_columns * layout.element);
    return shape;
  }

  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override {
    if (is_canonical(problem_class.typical()))
      return CanonicalColumns(problem_class.typical(), candidate.policy).workspace_bytes(candidate.geometry.max_blocks);
    const Layout layout(problem_class.typical(), candidate.policy);
    if (!layout.is_split()) return 0;
    // A block's outputs are those of its tile, whatever the shape: this holds for the whole size class.
    const std::int64_t outputs = std::min(layout.columns, problem_class.sizes()[2].last);
    return kWorkspaceHeaderBytes + static_cast<std::size_t>(candidate.geometry.max_blocks * outputs * layout.state);
  }

  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override {
    const std::int64_t most_blocks = at_least_one(candidate.geometry.max_blocks);
    if (is_canonical(problem))
      return CanonicalColumns(problem, candidate.policy).encode(most_blocks, buffers, workspace, launches);
    Layout layout(problem, candidate.policy);
    const AxisLayout& axis = layout.axis;
    if (layout.is_staged() && !layout.has_gaps())
      return layout.staged_tile().add_launch(launches, axis, most_blocks, buffers);
    const auto parts = static_cast<unsigned>(layout.parts(candidate.geometry.max_blocks));
    if (layout.is_staged()) {  // rows with gaps cannot be staged
      layout.rows = axis.reduced;
      layout.folds = 1;
      layout.slice_tiles = divide_up(axis.inner, kLanesOfGaps);
      layout.tiles = axis.outer * layout.slice_tiles;
    }
    const ColumnsArguments arguments{.in = buffers[0],
                                     .out = buffers[1],
                                     .workspace = workspace,
                                     .outer = static_cast<std::uint64_t>(axis.outer),
                                     .reduced = static_cast<std::uint64_t>(axis.reduced),
                                     .inner = static_cast<std::uint64_t>(axis.inner),
                                     .pitch = static_cast<std::uint64_t>(axis.reduced_stride),
                                     .slice_pitch = static_cast<std::uint64_t>(axis.outer_stride),
                                     .rows = static_cast<std::uint64_t>(layout.rows),
                                     .slice_tiles = static_cast<std::uint64_t>(layout.slice_tiles),
                                     .folds = static_cast<unsigned>(layout.folds),
                                     .parts = parts};
    add_launch(launches, std::min(layout.tiles * parts, most_blocks), layout.block_threads, arguments).entry =
        layout.is_staged() ? 1 : 0;
    if (parts > 1) add_combining_launch(launches, layout.combining_block(), axis, parts, workspace, buffers[1]);
  }

  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override {
    const Layout layout(problem, candidate.policy);
    const std::int64_t block_levels = 10;
    if (layout.is_staged()) return layout.has_gaps() ? layout.axis.reduced : layout.staged_tile().chain(layout.axis);
    const std::int64_t parts = layout.parts(candidate.geometry.max_blocks);
    const std::int64_t rounds = divide_up(layout.rows, parts * layout.tile_rows);
    const std::int64_t unrolled = 4 + layout.unroll;     // levels, and the last rows one after the other
    const std::int64_t ends = 2 * layout.pack_elements;  // rows that are taken one by one
    return unrolled + rounds + layout.threads_per_column + ends + layout.folds + parts + block_levels;
  }
};

}  // namespace

const ParameterSpace& ColumnsPolicy::space() {
  using P = ColumnsPolicy;
  static const ParameterSpace space = space_of<P>(
      PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
      PolicyField{&P::threads_per_column, ordinal("threads_per_column", {1, 2, 4, 8, 16, 32, 64})},
      PolicyField{&P::unroll, ordinal("unroll", {2, 4, 8, 16})},
      PolicyField{&P::scope, scope_parameter({Scope::block, Scope::grid})},
      PolicyField{
          &P::staging,
          staging_parameter({Staging::direct, Staging::shared, Staging::shifted}).only_if("scope", {Scope::block})},
      PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::unset, MinBlocks::one, MinBlocks::one_half})});
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
