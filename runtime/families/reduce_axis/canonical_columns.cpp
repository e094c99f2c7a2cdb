#include "runtime/families/reduce_axis/canonical_columns.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "runtime/families/reduce/reduction_family.h"

namespace hone {
namespace {

/// kThreadSpans of canonical_columns.cuh.
constexpr std::int64_t kThreadSpans = 8;

/// Spans for each block of a grid, at most: the last round of a grid is the shorter, the shorter they are.
constexpr std::int64_t kSpansOfBlock = 4;

/// Blocks may take parts of a chunk where all tiles together have no more chunks than these: about two for each SM of a
/// large GPU. The sum of 2048 × 768 f16 took 5.65 µs by whole chunks, and takes 3.9; that of 10000 × 512 f32, in
/// whose size class there are up to 276, took 9.1 µs by parts, since these take more registers, and 8.6 by whole chunks
/// (H200, CUDA 13.0, graphs, 2026-11-29).
constexpr std::int64_t kFewChunks = 256;

constexpr std::int64_t kLeastRowBytes = 128;     ///< a memory transaction
constexpr std::int64_t kLeastHeldRowBytes = 64;  ///< two sectors: wider tiles have chunks that no block holds
constexpr std::int64_t kMostStateBytes = 64;     ///< of a thread's columns, which has several nodes of each

/// A thread has few columns where their chunks take many registers. logsumexp of 8192 × 8192 took 56.9 µs of f16 and
/// 77.3 of f32 with two columns, 61.0 and 84.5 with four; mean and variance 71.0 and 92.9 with two, 66.2 and 105.4 with
/// four (H200, CUDA 13.0, 2026-11-29).
constexpr std::int64_t kColumnsOfLogsumexp = 2;
constexpr std::int64_t kBytesOfMoments = 8;      ///< of a row
constexpr std::int64_t kMostPackBytes = 128;     ///< in a thread's registers: packs that it loads at once
constexpr std::int64_t kMostHeldBytes = 256;     ///< the same, where they are a chunk that it holds
constexpr std::int64_t kMostNodeBytes = 192;     ///< the same, of the nodes of its batches

bool is_logsumexp(const Problem& problem) { return reduce_spec_of(problem).op == ReduceOp::logsumexp; }

std::int64_t most_state_bytes(const Problem& problem) {
  const auto state = static_cast<std::int64_t>(axis_state_bytes(problem));
  if (!is_by_chunk(problem)) return kMostStateBytes;
  if (is_logsumexp(problem)) return kColumnsOfLogsumexp * state;
  return std::min(kMostStateBytes, at_least_one(kBytesOfMoments / element_bytes(problem)) * state);
}

int bits_of(std::int64_t count) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count))); }

struct View : PolicyView<CanonicalColumns> {
  using PolicyView::PolicyView;

  std::int64_t pack_bytes = pack_elements * element;
  std::int64_t width = at_least_one(std::min(columns, folds * axis.inner));  ///< of a tile
  std::int64_t batches_at_once = is_logsumexp(problem) && batch_levels > 0 ? 2 : 1;  ///< kLoadsAhead
};

constexpr std::array<PruneRule<View>, 13> kRules{{
    {"launch bounds were not tried here", kNotMeasured,
     [](const View& v) { return v.min_blocks != MinBlocks::unset; }},
    {"blocks of 1024 threads leave each too few registers",
     "logsumexp of 8192 × 8192 f16 took 512 threads 68.3 µs, 1024 85.8 (H200, CUDA 13.0, 2026-11-29)",
     [](const View& v) { return is_by_chunk(v.problem) && v.block_threads > 512; }},
    {"the rows of a tile are not worth a memory transaction", kNotMeasured,
     [](const View& v) {
       return v.columns * v.element + kMaxAlignment < (v.holds_chunks() ? kLeastHeldRowBytes : kLeastRowBytes);
     }},
    {"so many packs take too many registers, unless they are a chunk that a block holds", kNotMeasured,
     [](const View& v) { return v.unroll > 16 && !v.holds_chunks(); }},
    {"a thread's packs do not fit the registers", kNotMeasured,
     [](const View& v) {
       return v.batches_at_once * v.unroll * v.pack_bytes > (v.holds_chunks() ? kMostHeldBytes : kMostPackBytes);
     }},
    {"the nodes of a thread's batches do not fit the registers", kNotMeasured,
     [](const View& v) {
       const std::int64_t node = is_by_chunk(v.problem) ? v.accumulator_bytes() : v.state;
       return v.batch_levels * v.pack_elements * node > kMostNodeBytes;
     }},
    {"a tile has more columns than rows are long", kNotMeasured,
     [](const View& v) { return !v.may_fold && 3 * v.axis.inner < 2 * v.columns && v.lanes() > 8; }},
    {"there are too few rows for so many threads", kNotMeasured,
     [](const View& v) { return v.threads_per_column > 1 && v.threads_per_column >= 2 * v.rows; }},
    {"threads load more rows at once than there are", kNotMeasured,
     [](const View& v) { return v.unroll > 2 && v.tile_rows >= 2 * v.rows; }},
    {"columns of one chunk are not shared by blocks, unless these may cut it", kNotMeasured,
     [](const View& v) { return v.is_split() && v.chunks() << v.most_cut_levels() < 2; }},
    {"there are tiles enough for all blocks", kNotMeasured,
     [](const View& v) { return v.is_split() && v.tiles > 8 * v.facts.sm_count; }},
    {"the tiles leave most SMs idle", kNotMeasured,
     [](const View& v) { return !v.is_split() && v.chunks() > 8 && 2 * v.tiles < v.facts.sm_count; }},
    {"a tile of few threads to a column has many rows, where narrower ones would keep more SMs busy", kNotMeasured,
     [](const View& v) {
       return v.threads_per_column < 8 && v.rows >= v.chunk && v.lanes() > 8 &&
              v.tiles * v.chunks() < v.facts.sm_count;
     }},
}};

}  // namespace

CanonicalColumns::CanonicalColumns(const Problem& of, const Policy& policy)
    : ColumnsLayout(of, policy, most_state_bytes(of)) {
  folds = std::min<std::int64_t>(chunk, std::bit_floor(static_cast<std::uint64_t>(at_least_one(folds))));
  rows = divide_up(axis.reduced, folds);
  const std::int64_t most = at_least_one(last_of(problem, 1));
  batch_levels = bits_of((std::min(chunk, most) - 1) / tile_rows);
  levels = bits_of(divide_up(most, chunk) - 1);
}

std::int64_t CanonicalColumns::smem_bytes() const {
  const std::int64_t nodes = levels * columns * state;
  if (!is_by_chunk(problem)) return 2 * threads_per_column * columns * state + nodes;
  const ReduceSpec spec = reduce_spec_of(problem);
  const std::int64_t acc = accumulator_bytes();
  const bool finds_first = spec.op == ReduceOp::mean_variance && spec.nan == NanPolicy::ignore;
  return (rows_of_states() + 1) * columns * (acc + (finds_first ? acc + 8 : 0)) + nodes;
}

std::int64_t CanonicalColumns::rows_of_states() const {
  const std::int64_t of_warp = at_least_one(32 / lanes()), apart = threads_per_column / of_warp;
  return is_phase_matched && apart % pack_elements != 0 ? threads_per_column : apart;
}

Reason CanonicalColumns::is_valid(const DeviceFacts& facts) const {
  return first_reason({check_blocks(facts, block_threads),
                       reason_if(lanes() < 2, "each thread has a share of the same column"),
                       reason_if(staging != Staging::direct, "the canonical tree has no staged and no shifted columns"),
                       reason_if(tile_rows > chunk, "threads load more rows at once than a chunk has"),
                       check_smem_of_kernels(facts, smem_bytes())});
}

Reason CanonicalColumns::prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) {
  return pruned_by(kRules, View(problem_class, policy, facts));
}

Spans CanonicalColumns::spans(std::int64_t max_blocks) const {
  if (!is_split()) return {};
  const CombiningBlock block = combining_block();
  const std::int64_t room = static_cast<std::int64_t>(kWorkspaceBytes - kWorkspaceHeaderBytes) / state;
  const std::int64_t most =
      std::min({kThreadSpans * (block.threads / block.outputs), kSpansOfBlock * max_blocks / at_least_one(tiles),
                room / at_least_one(axis.outputs())});
  Spans spans = Spans::of(chunks(), at_least_one(most));
  const std::int64_t most_of_cut = std::min(most, max_blocks / at_least_one(tiles));
  for (const int least = -most_cut_levels(); spans.levels > least && 2 * spans.count <= most_of_cut; --spans.levels)
    spans.count *= 2;
  return spans;
}

bool CanonicalColumns::cuts_chunks() const {
  const std::int64_t most = last_of(problem, 0) * divide_up(last_of(problem, 2), columns) *
                            divide_up(last_of(problem, 1), chunk);
  return is_split() && !may_fold && !is_by_chunk(problem) && most <= kFewChunks;
}

int CanonicalColumns::most_cut_levels() const {
  return cuts_chunks() ? std::max(0, bits_of(std::min(chunk, rows) / tile_rows) - 1) : 0;
}

Unit CanonicalColumns::unit() const {
  const std::string_view starts = is_aligned(problem) ? "aligned" : "phase_matched";
  const int values = op_of(problem).outputs;
  Unit unit = unit_of(
      axis_prologue(problem, "canonical_columns.cuh") +
          fmt::format("using Columns = hone::CanonicalColumns<Op, {}, {}, {}, {}, hone::RowStarts::{}, {},\n"
                      "                                       {}, {}, {}, {}, Out, {}>;\n"
                      "static_assert(Columns::kTileColumns == {} && hone::kThreadSpans == {} &&\n"
                      "              hone::kChunkElements<In> == {}, \"host and device disagree\");\n",
                      block_threads, threads_per_column, pack_elements, unroll, starts, may_fold, batch_levels, levels,
                      is_split(), cuts_chunks(), values, columns, kThreadSpans, chunk),
      {kernel_entry("Columns::reduce", block_threads, is_by_chunk(problem) ? MinBlocks::one_quarter : min_blocks)});
  if (is_split()) {
    const CombiningBlock block = combining_block();
    unit.entries.push_back(kernel_entry(
        fmt::format("hone::combine_spans<Op, {}, {}, Out, {}>", block.threads, block.outputs, values), block.threads));
  }
  return unit;
}

WorkShape CanonicalColumns::shape() const {
  WorkShape shape{.independent_blocks = !is_split()};
  shape.tiles = at_least_one(tiles) * (is_split() ? chunks() << most_cut_levels() : 1);
  shape.launches = is_split() ? 2 : 1;
  const std::int64_t used_columns = std::min(columns, folds * axis.inner);
  const std::int64_t at_once = std::min({tile_rows, rows, chunk / folds});
  shape.bytes_in_flight_per_block = at_least_one(at_once * used_columns * element);
  return shape;
}

std::size_t CanonicalColumns::workspace_bytes(std::int64_t max_blocks) const {
  if (!is_split()) return 0;
  // The outputs of a tile are at most its columns, whatever the shape: this holds for the whole size class.
  const std::int64_t outputs = std::min(columns, last_of(problem, 2));
  const auto partials = static_cast<std::size_t>(kSpansOfBlock * max_blocks * outputs * state);
  return std::min<std::size_t>(kWorkspaceBytes, kWorkspaceHeaderBytes + partials);
}

void CanonicalColumns::encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace,
                              LaunchList& launches) const {
  add_launches(0, spans(max_blocks), max_blocks, buffers, workspace, launches);
}

}  // namespace hone
