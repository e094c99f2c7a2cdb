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

/// Pipeline fill and drain of a block that shares the rows of a tile, in memory latencies: its first and last tiles,
/// and the combination of its threads' States. Each wave of blocks beyond the first makes a call so much longer: 1.8 to
/// 2.5 µs, logsumexp 2.2 to 4.9 (medians of f16 and f32, H100 and H200, CUDA 13.0, 2026-11).
constexpr double kPipelineFillLatencies = 3.5;
constexpr double kPipelineFillLatenciesOfLogsumexp = 6;

/// A tile's row: shorter ones are not worth a memory transaction.
constexpr std::int64_t kLeastRowBytes = 128;

/// A policy on a problem.
struct Layout : ColumnsLayout {
  using ColumnsLayout::ColumnsLayout;

  std::int64_t pack_bytes = pack_elements * element;
  std::int64_t states_bytes = threads_per_column * columns * state;

  Reason is_valid(const DeviceFacts& facts) const {
    if (Reason reason = check_blocks(facts, block_threads); !reason.empty()) return reason;
    if (is_staged()) return staged_tile().is_valid();
    const bool shifts = staging == Staging::shifted;
    return first_reason(
        {reason_if(lanes() < 2, "each thread has a share of the same column"),
         reason_if(shifts && is_aligned(problem), "rows that begin with a pack need not be shifted"),
         reason_if(shifts && threads_per_column >= pack_elements, "threads whose rows begin alike have whole packs"),
         reason_if(shifts && may_fold, "short rows are no shorter for it"),
         reason_if(shifts && pack_bytes < 4, "packs of less than a word"), check_smem_of_kernels(facts, smem_bytes())});
  }

  /// The States of each row of threads, with gaps (ColumnTiling::slot()).
  std::int64_t smem_bytes() const {
    const std::int64_t gap = state <= 4 ? 32 : state <= 8 ? 16 : state <= 16 ? 8 : 4;
    return threads_per_column * (columns + (columns - 1) / gap) * state;
  }

  /// The type that takes columns with `sharing` threads each.
  std::string columns_type(std::int64_t sharing, std::int64_t pack, int loads, bool folds_rows) const {
    return fmt::format(
        "using Columns = hone::ColumnReduce<Op, {}, {}, {}, {}, hone::RowStarts::{}, {},\n"
        "                                    hone::Tiles::{}, {}, Out, {}>;\n",
        block_threads, sharing, pack, loads,
        is_aligned(problem) ? "aligned" : is_phase_matched ? "phase_matched" : "shifted_loads", folds_rows,
        tiles_of_thread(), is_split(), op_of(problem).outputs);
  }

  /// An enumerator of Tiles. Where a bound makes room for more warps anyway, double buffering costs none. Without it
  /// and without a bound, logsumexp of 5 x 4194305 f32 by 128 threads x 4 shifted packs, which then takes 64
  /// registers and not 96, took 37.8 µs instead of 44.3 (H100, CUDA 13.0, 2026-11-27).
  std::string_view tiles_of_thread() const {
    if (takes_tiles_up_to(kTooFewTiles) && min_blocks == MinBlocks::unset) return "two";
    return takes_tiles_up_to(kFewTiles) ? "few" : "many";
  }

  Unit unit() const {
    if (is_staged())  // Columns take rows with gaps
      return unit_of(axis_prologue(problem, "reduce_columns.cuh\"\n#include \"staged_reduce.cuh") +
                         staged_tile().source(false, op_of(problem).outputs) +
                         columns_type(block_threads / kLanesOfGaps, 1, 2, false),
                     {kernel_entry("Kernel::reduce", *this), kernel_entry("Columns::reduce", *this)});
    Unit unit = unit_of(axis_prologue(problem, "reduce_columns.cuh") +
                            columns_type(threads_per_column, pack_elements, unroll, may_fold),
                        {kernel_entry("Columns::reduce", *this)});
    unit.source += fmt::format(
        "static_assert(Columns::kTileColumns == {} && Columns::kSmemBytes == {},\n"
        "              \"host and device disagree on the tile\");\n",
        columns, smem_bytes());
    if (is_split()) unit.entries.push_back(combining_entry(combining_block(), op_of(problem).outputs));
    return unit;
  }

  WorkShape shape() const {
    WorkShape shape{.independent_blocks = !is_split()};
    if (is_staged()) {
      shape.tiles = staged_tile().tiles(axis);
      shape.bytes_in_flight_per_block = staged_tile().bytes();
      return shape;
    }
    shape.tiles = at_least_one(tiles);
    if (is_split()) {
      shape.tiles *= at_least_one(divide_up(rows, tile_rows));
      shape.launches = 2;
      shape.pipeline_fill_latencies = reduce_spec_of(problem).op == ReduceOp::logsumexp
                                          ? kPipelineFillLatenciesOfLogsumexp
                                          : kPipelineFillLatencies;
    }
    if (!is_aligned(problem) && slice_tiles > 1)
      shape.traffic = traffic_of_shared_edges(columns * element);
    const std::int64_t used_columns = std::min(columns, folds * axis.inner);
    shape.bytes_in_flight_per_block = at_least_one(std::min(tile_rows, rows) * used_columns * element);
    return shape;
  }

  std::size_t workspace_bytes(std::int64_t max_blocks) const {
    if (!is_split()) return 0;
    // A block's outputs are those of its tile, whatever the shape: this holds for the whole size class.
    const std::int64_t outputs = std::min(columns, last_of(problem, 2));
    return kWorkspaceHeaderBytes + static_cast<std::size_t>(max_blocks * outputs * state);
  }

  void encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace, LaunchList& launches) const {
    if (is_staged() && !has_gaps()) return staged_tile().add_launch(launches, axis, max_blocks, buffers);
    Layout taken = *this;
    if (is_staged()) {  // rows with gaps cannot be staged
      taken.rows = axis.reduced;
      taken.folds = 1;
      taken.may_fold = false;
      taken.divide_columns(kLanesOfGaps);
    } else {
      taken.even_out(max_blocks);
    }
    const Spans split{.count = taken.parts(max_blocks)};
    taken.add_launches(is_staged() ? 1 : 0, split, max_blocks, buffers, workspace, launches);
  }

  std::int64_t longest_chain(std::int64_t max_blocks) const {
    const std::int64_t block_levels = 10;
    if (is_staged()) return has_gaps() ? axis.reduced : staged_tile().chain(axis);
    const std::int64_t rounds = divide_up(rows, parts(max_blocks) * tile_rows);
    const std::int64_t unrolled = 4 + unroll;     // levels, and the last rows one after the other
    const std::int64_t ends = 2 * pack_elements;  // rows that are taken one by one
    return unrolled + rounds + threads_per_column + ends + folds + parts(max_blocks) + block_levels;
  }
};

struct View : PolicyView<Layout> {
  using PolicyView::PolicyView;

  std::int64_t rounds = rows / tile_rows;

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
    {"a thread has loads enough of its own, or takes no more registers than 1024 threads leave",
     "99.8 % (H100, prune_rules)",
     [](const View& v) { return v.min_blocks == MinBlocks::one_half && !v.wants_1024_threads(); }},
    {"threads of few tiles want 1024 of them on an SM", kNotMeasured,
     [](const View& v) { return v.min_blocks != MinBlocks::one_half && v.wants_1024_threads() && !is_host(v.facts); }},
}};

constexpr std::array<PruneRule<View>, 2> kStagedRules{{
    {"16 packs of a thread are too many for a staged tile", kNotMeasured, [](const View& v) { return v.unroll >= 16; }},
    {"one slice is not worth a copy", kNotMeasured, [](const View& v) { return v.axis.outer < 2; }},
}};

constexpr std::array<PruneRule<View>, 14> kDirectRules{{
    {"so many packs do not fit the registers", kNotMeasured, [](const View& v) { return v.unroll > 16; }},
    {"so few rows at once have narrow packs", kNotMeasured,
     [](const View& v) { return v.staging == Staging::shifted && v.pack_bytes < 8; }},
    {"threads that have rows of one alignment each have enough of them",
     "60 x 200003 f16: sums 8.0 µs, 8.7 shifted, logsumexp 10.0, 11.2; 31 x 1048577: 22.1, 20.4 (H200, 2026-12-01)",
     [](const View& v) { return v.staging == Staging::shifted && v.rows * v.element > 6 * kMaxAlignment; }},
    {"the states of a tile's columns leave shared memory for too few blocks", kNotMeasured,
     [](const View& v) { return v.states_bytes > kMostSharedBytes; }},
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

Reason pruned(const View& v) {
  if (!v.is_staged()) return first_reason({pruned_by(kBoundsRules, v), pruned_by(kDirectRules, v)});
  return first_reason({pruned_by(kBoundsRules, v), pruned_by(kStagedRules, v), v.staged_tile().prune()});
}

}  // namespace

const ParameterSpace& ColumnsPolicy::space() {
  using P = ColumnsPolicy;
  static const auto& space = never_destroyed(space_of<P>(
      PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
      PolicyField{&P::threads_per_column, ordinal("threads_per_column", {1, 2, 4, 8, 16, 32, 64})},
      PolicyField{&P::unroll, ordinal("unroll", {2, 4, 8, 16, 32})},
      PolicyField{&P::scope, scope_parameter({Scope::block, Scope::grid})},
      PolicyField{
          &P::staging,
          staging_parameter({Staging::direct, Staging::shared, Staging::shifted}).only_if("scope", {Scope::block})},
      PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::unset, MinBlocks::one, MinBlocks::one_half})}));
  return space;
}

const KernelFamily& reduce_columns_family() {
  static const auto& family = never_destroyed<LayoutFamily<AxisFamily, Layout, pruned, CanonicalColumns>>(
      FamilyTraits{.name = "reduce_columns",
                   .space = ColumnsPolicy::space(),
                   .extent_names = {"outer", "reduced", "inner"},
                   .kernels = {"reduce_columns.cuh", "staged_reduce.cuh", "canonical_columns.cuh"}});
  return family;
}

Problem reduce_columns_problem(const ReduceSpec& spec, const ColumnsShape& shape, std::uint32_t alignment) {
  if (shape.inner == 1 && (shape.pitch == 0 || shape.pitch == 1)) {
    // A shape that is refused is refused as columns: those were asked for.
    const Problem rows = reduce_rows_problem(spec, {.rows = shape.outer, .columns = shape.reduced}, alignment);
    if (reduce_rows_family().refuse(rows).empty()) return rows;
  }
  return axis_problem(reduce_columns_family(), spec, {shape.outer, shape.reduced, shape.inner}, shape.pitch,
                      shape.inner, alignment);
}

}  // namespace hone
