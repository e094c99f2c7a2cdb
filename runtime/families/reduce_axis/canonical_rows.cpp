#include "runtime/families/reduce_axis/canonical_rows.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/row_tiles.h"

namespace hone {
namespace {

constexpr std::int64_t kMostBytesPerBlock = 128 * 1024;  ///< in registers
constexpr int kMostPacksOfThread = 8;
constexpr std::int64_t kMostSplitRows = 2048;
constexpr std::int64_t kThreadsThatFillAnSm = 256;

struct View : PolicyView<CanonicalRows> {
  using PolicyView::PolicyView;

  std::int64_t rows = axis.outer, columns = at_least_one(axis.reduced);
  std::int64_t longest = at_least_one(last_of(problem, 1));  ///< row of the class
  std::int64_t bytes = columns * element_bytes(problem);     ///< of a row
  bool is_by_warps = is_direct_warp() && !is_by_lanes;
};

constexpr std::array<PruneRule<View>, 13> kRules{{
    kNoLaunchBounds<View, MinBlocks::one>,
    {"half of an SM's 2048 threads are one block of 1024", "that is min_blocks=1",
     [](const View& v) { return v.min_blocks == MinBlocks::one_half && v.block_threads >= 1024; }},
    {"more warps gain nothing where loads are what threads wait for, and 64 registers hold one chunk", kNotMeasured,
     [](const View& v) {
       return v.min_blocks == MinBlocks::one_half && (!is_by_chunk(v.problem) || v.unroll > (v.is_by_lanes ? 4 : 1));
     }},
    {"a staged tile is in no registers", "the same loads in flight, through cp.async",
     [](const View& v) { return v.min_blocks != MinBlocks::one && v.is_staged(); }},
    {"rows are aligned: they need not be copied to shared memory first", "as with fast numerics",
     [](const View& v) { return v.is_staged() && is_aligned(v.problem); }},
    {"the chunks of a block are more than its registers hold", "ptxas of CUDA 13.0, sm_90, 2026-11: spills",
     [](const View& v) { return !v.is_by_lanes && !v.is_staged() && v.block_bytes > kMostBytesPerBlock; }},
    {"a block's warps have nothing to tell each other: 512 threads are enough", kNotMeasured,
     [](const View& v) { return v.scope == Scope::warp && v.block_threads > 512; }},
    {"the packs of a thread's rows are more than its registers hold", kNotMeasured,
     [](const View& v) { return v.is_by_lanes && v.unroll * v.rows_per_thread > kMostPacksOfThread; }},
    {"lanes load more at once than a row has", kNotMeasured,
     [](const View& v) { return v.is_by_lanes && v.unroll * v.threads_per_row > 1 && v.at_once >= 2 * v.longest; }},
    {"rows of a warp each leave most of the device idle", kNotMeasured,
     [](const View& v) {
       return v.is_by_warps && v.bytes > 16 * kChunkBytes &&
              v.rows * kMostSpanRounds < v.facts.sm_count * kThreadsThatFillAnSm;
     }},
    {"a warp or a block has more chunks in flight than a row has", kNotMeasured,
     [](const View& v) {
       if (v.scope == Scope::warp) return v.is_by_warps && v.unroll > 1 && v.unroll * kChunkBytes >= 2 * v.bytes;
       return v.block_bytes >= 2 * v.bytes && (v.block_threads > 128 || v.unroll > 1);
     }},
    {"so many rows need no second kernel", kNotMeasured,
     [](const View& v) { return v.scope == Scope::grid && v.rows > kMostSplitRows; }},
    {"a row is too short for a second kernel, or the blocks of all rows leave most SMs idle", kNotMeasured,
     [](const View& v) {
       if (v.scope == Scope::grid) return v.bytes <= v.block_bytes;
       return v.scope == Scope::block && v.bytes > 4 * v.block_bytes && 2 * v.rows < v.facts.sm_count;
     }},
}};

}  // namespace

Reason CanonicalRows::is_valid(const DeviceFacts& facts) const {
  const bool is_by_warps = is_direct_warp() && !is_by_lanes;
  return first_reason({check_blocks(facts, block_threads), is_staged() ? tiles_are_valid() : Reason(),
                       reason_if(scope == Scope::cluster || tail != Tail::warp,
                                 "the canonical tree has no clusters and no tail in shared memory"),
                       reason_if(is_by_warps && (threads_per_row != 32 || rows_per_thread != 1),
                                 "a row is more than these lanes load at once, and not a warp's"),
                       reason_if(!is_by_lanes && !is_staged() && has_too_many_values(problem, unroll, kMaxAlignment),
                                 "a warp folds at most 32 values of a lane at once")});
}

Reason CanonicalRows::tiles_are_valid() const {
  return first_reason({staged_tile().is_valid(),
                       reason_if(element_bytes(problem) < 2, "words have at most two elements"),
                       reason_if(last_of(problem, 1) > chunk, "a staged row is a chunk at most"),
                       reason_if(most_elements_each(problem, threads_per_row) > kMostElementsInWords,
                                 "a lane has more elements than the registers hold")});
}

Reason CanonicalRows::prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) {
  const View view(problem_class, policy, facts);
  return first_reason({pruned_by(kRules, view), view.is_staged() ? view.staged_tile().prune() : Reason()});
}

Spans CanonicalRows::spans() const {
  const std::int64_t tiles = at_least_one(divide_up(axis.reduced * element_bytes(problem), block_bytes));
  if (scope == Scope::block) return Spans::of(tiles, kMostSpanRounds);
  const std::int64_t most = most_partials(block_threads);
  return Spans::of(tiles, at_least_one(most / at_least_one(last_of(problem, 0))));
}

Unit CanonicalRows::unit() const {
  const auto entry = [&](std::string_view body) { return kernel_entry(body, block_threads, min_blocks); };
  if (is_staged()) {
    return unit_of(axis_prologue(problem, "canonical_row_tiles.cuh") +
                       fmt::format("using Kernel = hone::CanonicalRowTiles<Op, {}, {}, {}, {}, {}, Out, {}>;\n"
                                   "static_assert(Kernel::kTileElements == {}, \"host and device disagree\");\n",
                                   block_threads, threads_per_row, unroll, least_elements_each(problem, threads_per_row),
                                   most_elements_each(problem, threads_per_row), op_of(problem).outputs,
                                   staged_tile().elements),
                   {entry("Kernel::reduce")});
  }
  if (is_by_lanes)
    return unit_of(
        axis_prologue(problem, "canonical_row_lanes.cuh") +
            fmt::format("using Kernel = hone::CanonicalRowLanes<Op, {}, {}, {}, {}, {}, {}, Out, {}>;\n"
                        "static_assert(Kernel::kTileRows == {}, \"host and device disagree\");\n",
                        block_threads, threads_per_row, unroll, rows_per_thread, pack, !reads_shifted,
                        op_of(problem).outputs, tile_rows()),
        {entry("Kernel::reduce")});
  const std::string source = axis_prologue(problem, "canonical_row_blocks.cuh") +
                             fmt::format("using Kernel = hone::CanonicalRowBlocks<Op, {}, {}, Out, {}>;\n"
                                         "static_assert(Kernel::kTileBytes == {}, \"host and device disagree\");\n",
                                         block_threads, unroll, op_of(problem).outputs, block_bytes);
  if (scope == Scope::grid) return unit_of(source, {entry("Kernel::publish"), entry("Kernel::finish")});
  return unit_of(source, {entry(scope == Scope::warp ? "Kernel::reduce_by_warp" : "Kernel::reduce_by_block")});
}

WorkShape CanonicalRows::shape() const {
  const std::int64_t rows = at_least_one(axis.outer);
  const std::int64_t bytes = at_least_one(axis.reduced) * element_bytes(problem);
  WorkShape shape{.independent_blocks = scope != Scope::grid};
  if (is_staged()) {
    shape.tiles = staged_tile().tiles(axis);
    shape.bytes_in_flight_per_block = staged_tile().bytes();
  } else if (is_by_lanes) {
    shape.tiles = divide_up(rows, tile_rows());
    shape.bytes_in_flight_per_block = tile_rows() * bytes;
  } else if (scope == Scope::warp) {
    shape.tiles = divide_up(rows, block_threads / 32);
    shape.bytes_in_flight_per_block = std::min(block_threads / 32 * bytes, block_bytes);
  } else {
    shape.tiles = scope == Scope::grid ? rows * divide_up(bytes, block_bytes) : rows;
    shape.bytes_in_flight_per_block = std::min(bytes, block_bytes);
    shape.launches = scope == Scope::grid ? 2 : 1;
  }
  if (!is_staged() && !is_by_lanes) add_folds(shape, unroll, element_bytes(problem));
  return shape;
}

std::size_t CanonicalRows::workspace_bytes(std::int64_t) const {
  if (scope != Scope::grid) return 0;
  const std::int64_t partials = std::max(most_partials(block_threads), last_of(problem, 0));
  return kWorkspaceHeaderBytes + static_cast<std::size_t>(partials) * axis_state_bytes(problem);
}

void CanonicalRows::encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace,
                           LaunchList& launches) const {
  const std::int64_t rows = axis.outer;
  const Spans division = spans();
  std::int64_t blocks = rows;
  if (is_staged())
    blocks = staged_tile().tiles(axis);
  else if (is_by_lanes)
    blocks = divide_up(rows, tile_rows());
  else if (scope == Scope::warp)
    blocks = divide_up(rows, block_threads / 32);
  else if (scope == Scope::grid)
    blocks = rows * division.count;
  const RowsArguments arguments{.in = buffers[0],
                                .out = buffers[1],
                                .workspace = workspace,
                                .rows = static_cast<std::uint64_t>(rows),
                                .columns = static_cast<std::uint64_t>(axis.reduced),
                                .pitch = static_cast<std::uint64_t>(axis.outer_stride),
                                .parts = static_cast<unsigned>(is_staged() ? staged_tile().slices(axis)
                                                                           : division.count),
                                .run_levels = static_cast<unsigned>(division.levels)};
  add_launch(launches, std::min(blocks, max_blocks), block_threads, arguments);
  if (scope == Scope::grid) add_launch(launches, std::min(rows, max_blocks), block_threads, arguments).entry = 1;
}

}  // namespace hone
