#include "runtime/families/softmax/canonical_softmax.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

namespace hone {
namespace {

constexpr std::int64_t kMostPacksOfBlock = 4096;      ///< in registers
constexpr std::int64_t kMostElementsOfLane = 32;      ///< of a row, which are kept as accumulators
constexpr std::int64_t kMostHeldBytes = 32 * 1024;    ///< some block holds a row in the middle of such a class

struct View : PolicyView<CanonicalSoftmax> {
  using PolicyView::PolicyView;

  std::int64_t row_bytes = at_least_one(columns) * traits.in_bytes;
  std::int64_t longest = at_least_one(last_of(problem, 1));  ///< row of the class
};

constexpr std::array<PruneRule<View>, 7> kRules{{
    {"launch bounds were not tried here", kNotMeasured,
     [](const View& v) { return v.min_blocks != MinBlocks::unset; }},
    {"groups of lanes need no blocks of more than 256 threads", kNotMeasured,
     [](const View& v) { return v.scope == Scope::warp && v.block_threads > 256; }},
    {"a lane holds more elements than its registers", kNotMeasured,
     [](const View& v) { return v.scope == Scope::warp && v.packs_per_thread * v.pack > kMostElementsOfLane; }},
    {"lanes hold more than twice a row", kNotMeasured,
     [](const View& v) { return v.scope == Scope::warp && v.of_lanes > v.pack && v.of_lanes >= 2 * v.longest; }},
    {"the packs of a block are more than its registers hold", kNotMeasured,
     [](const View& v) {
       return v.scope != Scope::warp && v.block_threads * v.packs_per_thread > kMostPacksOfBlock;
     }},
    {"a block takes more than twice a row at once", kNotMeasured,
     [](const View& v) {
       return v.scope != Scope::warp && v.tile >= 2 * v.longest && (v.block_threads > 128 || v.chunks_at_once > 1);
     }},
    {"larger blocks hold the row", kNotMeasured,
     [](const View& v) { return v.scope == Scope::block && !v.is_held && v.row_bytes <= kMostHeldBytes; }},
}};

}  // namespace

Reason CanonicalSoftmax::is_valid(const DeviceFacts& facts) const {
  const bool is_by_lanes = scope == Scope::warp;
  return first_reason(
      {check_blocks(facts, block_threads),
       reason_if(staging == Staging::shared || scope == Scope::cluster || scope == Scope::grid,
                 "reproducible rows are not in shared memory, and have no more than a block"),
       reason_if(is_by_lanes && !std::has_single_bit(static_cast<unsigned>(packs_per_thread)),
                 "lanes hold a power of two of packs"),
       reason_if(is_by_lanes && (of_lanes > chunk || last_of(problem, 1) > of_lanes), "lanes do not hold the row"),
       reason_if(!is_by_lanes && chunks_at_once * 4 != packs_per_thread, "a warp takes whole chunks"),
       reason_if(!is_by_lanes && !std::has_single_bit(static_cast<unsigned>(chunks_at_once)),
                 "a warp takes a power of two of chunks")});
}

Reason CanonicalSoftmax::prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) {
  return pruned_by(kRules, View(problem_class, policy, facts));
}

Unit CanonicalSoftmax::unit() const {
  std::string source = fmt::format(
      "#include \"canonical_softmax_rows.cuh\"\n\n"
      "using Types = hone::CanonicalSoftmaxTypes<{}, {}, {}, {}, {}, {}>;\n"
      "static_assert(hone::kChunkElements<Types::In> == {}, \"host and device disagree\");\n",
      info(traits.in).cuda_name, info(traits.out).cuda_name, info(traits.accumulator).cuda_name,
      index_type(needs_wide_index(problem, 1)), traits.is_log, pack, chunk);
  const auto held = [&](std::string_view kernel, std::int64_t most_columns) {
    source += fmt::format(
        "using Kernel = {};\nstatic_assert(Kernel::kMostColumns == {}, \"host and device disagree\");\n", kernel,
        most_columns);
    return unit_of(source, {kernel_entry("Kernel::run", block_threads, min_blocks)});
  };
  if (scope == Scope::warp)
    return held(fmt::format("hone::CanonicalSoftmaxLanes<Types, {}, {}, {}>", block_threads, threads_per_row,
                            packs_per_thread),
                of_lanes);
  if (is_held)
    return held(fmt::format("hone::CanonicalSoftmaxBlock<Types, {}, {}>", block_threads, chunks_at_once), tile);
  source += fmt::format("using Kernel = hone::CanonicalSoftmaxRows<Types, {}, {}>;\n"
                        "static_assert(Kernel::kTileBytes == {}, \"host and device disagree\");\n",
                        block_threads, chunks_at_once, tile * traits.in_bytes);
  return unit_of(source, {kernel_entry("Kernel::run", block_threads, min_blocks)});
}

WorkShape CanonicalSoftmax::shape() const {
  const std::int64_t count = at_least_one(rows);
  const std::int64_t row_bytes = at_least_one(columns) * traits.in_bytes;
  WorkShape shape{.block_threads = block_threads, .dependent_launch = true};
  if (scope == Scope::warp) {
    const std::int64_t groups = block_threads / threads_per_row;
    shape.tiles = divide_up(count, groups);
    shape.bytes_in_flight_per_block = groups * row_bytes;
    return shape;
  }
  shape.tiles = count;
  shape.bytes_in_flight_per_block = std::min(row_bytes, tile * traits.in_bytes);
  if (!is_held) shape.traffic = traits.traffic(2, 1);
  return shape;
}

void CanonicalSoftmax::encode(std::int64_t max_blocks, std::span<void* const> buffers, LaunchList& launches) const {
  const bool is_by_lanes = scope == Scope::warp;
  const std::int64_t tiles = is_by_lanes ? 1 : at_least_one(divide_up(columns, tile));
  const Spans division = Spans::of(tiles, kMostSpanRounds);
  const std::int64_t blocks = is_by_lanes ? divide_up(rows, block_threads / threads_per_row) : rows;
  with_accumulator(traits, [&]<class Acc>(Acc) {
    const SoftmaxArguments<Acc> arguments{.in = buffers[0],
                                          .out = buffers[1],
                                          .workspace = nullptr,
                                          .rows = static_cast<std::uint64_t>(rows),
                                          .columns = static_cast<std::uint64_t>(columns),
                                          .in_pitch = SoftmaxBase::pitch(problem, 0),
                                          .out_pitch = SoftmaxBase::pitch(problem, 1),
                                          .scale = softmax_factors<Acc>(problem),
                                          .chunks = static_cast<unsigned>(division.count),
                                          .packs_per_thread = 0,
                                          .lag = 0,
                                          .run_levels = static_cast<unsigned>(division.levels)};
    add_launch(launches, std::min(blocks, max_blocks), block_threads, arguments);
  });
}

}  // namespace hone
