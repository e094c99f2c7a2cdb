#include "runtime/families/softmax/canonical_softmax_columns.h"

#include <array>
#include <bit>

#include <fmt/format.h>

namespace hone {
namespace {

/// kThreadSpans of canonical_softmax_work.cuh.
constexpr std::int64_t kThreadSpans = 8;

/// Spans for each block of a grid, at most: the last round of a grid is the shorter, the shorter they are.
constexpr std::int64_t kSpansOfBlock = 4;

constexpr std::int64_t kMostHeldBytes = 128;  ///< of a thread's registers: elements that it loads at once
constexpr std::int64_t kMostNodeBytes = 192;  ///< the same, of the nodes of its batches

int bits_of(std::int64_t count) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count))); }

struct View : PolicyView<CanonicalSoftmaxColumns> {
  using PolicyView::PolicyView;

  std::int64_t row_packs = divide_up(at_least_one(center_of(problem, 2)), pack);
  std::int64_t node_bytes = pack * accumulator_bytes();
};

constexpr std::array<PruneRule<View>, 9> kRules{{
    {"launch bounds were not tried here", kNotMeasured, [](const View& v) { return v.min_blocks != MinBlocks::unset; }},
    {"rows have fewer packs than lanes", kNotMeasured,
     [](const View& v) { return v.lanes > 2 && v.lanes > v.row_packs; }},
    {"a thread's packs do not fit the registers", kNotMeasured,
     [](const View& v) { return v.packs_per_thread > 1 && v.packs_per_thread * v.node_bytes > kMostHeldBytes; }},
    {"a thread of so many has too few registers for doubles",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-25: 1024 threads that load 8 rows at once spill",
     [](const View& v) {
       return v.block_threads > 512 && v.packs_per_thread > 4 && v.traits.accumulator == DType::f64;
     }},
    {"the nodes of a thread's batches do not fit the registers", kNotMeasured,
     [](const View& v) { return v.batch_levels * v.node_bytes > kMostNodeBytes; }},
    {"there are too few rows for so many threads, or for so many at once", kNotMeasured,
     [](const View& v) { return (v.block_threads > 256 || v.packs_per_thread > 1) && v.tile_rows >= 2 * v.most; }},
    {"columns of one chunk are not shared by blocks", kNotMeasured,
     [](const View& v) { return v.in_chunks() && v.chunks() < 2; }},
    {"there are tiles enough for all blocks", kNotMeasured,
     [](const View& v) { return v.in_chunks() && v.tiles() > 8 * v.facts.sm_count; }},
    {"the tiles leave most SMs idle", kNotMeasured,
     [](const View& v) { return !v.in_chunks() && v.chunks() > 8 && 2 * v.tiles() < v.facts.sm_count; }},
}};

}  // namespace

CanonicalSoftmaxColumns::CanonicalSoftmaxColumns(const Problem& of, const Policy& policy)
    : SoftmaxColumnPolicy(policy.as<SoftmaxColumnPolicy>()),
      problem(of),
      batch_levels(bits_of((std::min(chunk, most) - 1) / tile_rows)),
      levels(bits_of(divide_up(most, chunk) - 1)) {}

std::int64_t CanonicalSoftmaxColumns::smem_bytes() const {
  return (2 * row_lanes() + levels + 2) * columns * accumulator_bytes();
}

Reason CanonicalSoftmaxColumns::is_valid(const DeviceFacts& facts) const {
  const std::int64_t partials = last_of(problem, 0) * last_of(problem, 2);
  return first_reason(
      {check_blocks(facts, block_threads), check_static_smem(smem_bytes()),
       reason_if(cluster_blocks > 1, "reproducible columns are not shared by clusters"),
       reason_if(staging != Staging::direct, "reproducible columns have packs that are aligned in every row"),
       reason_if(tile_rows > chunk, "threads load more rows at once than a chunk has"),
       reason_if(in_chunks() && 2 * partials > traits.most_partials(),
                 "columns have more partial results than the workspace")});
}

Reason CanonicalSoftmaxColumns::prune(const ProblemClass& problem_class, const Policy& policy,
                                      const DeviceFacts& facts) {
  return pruned_by(kRules, View(problem_class, policy, facts));
}

Unit CanonicalSoftmaxColumns::unit() const {
  const std::string source = fmt::format(
      "#include \"canonical_softmax_columns.cuh\"\n\n"
      "using Types = hone::CanonicalSoftmaxTypes<{}, {}, {}, long long, {}, {}>;\n"
      "using Kernel = hone::CanonicalSoftmaxColumns<Types, {}, {}, {}, {}, {}>;\n"
      "static_assert(Kernel::kColumns == {} && Kernel::kThreadSpans == {} &&\n"
      "              hone::kChunkElements<Types::In> == {}, \"host and device disagree\");\n",
      info(traits.in).cuda_name, info(traits.out).cuda_name, info(traits.accumulator).cuda_name, traits.is_log, pack,
      block_threads, lanes, packs_per_thread, batch_levels, levels, columns, kThreadSpans, chunk);
  if (!in_chunks()) return unit_of(source, {kernel_entry("Kernel::whole", *this)});
  return unit_of(source, {kernel_entry("Kernel::publish", *this),
                          kernel_entry("Kernel::correct", *this),
                          kernel_entry("Kernel::write_spans", *this)});
}

WorkShape CanonicalSoftmaxColumns::shape() const {
  const std::int64_t at_once = std::min({at_least_one(reduced), tile_rows, chunk});
  WorkShape shape{.independent_blocks = !in_chunks()};
  shape.tiles = tiles() * (in_chunks() ? chunks() : 1);
  shape.launches = in_chunks() ? 3 : 1;
  shape.bytes_in_flight_per_block =
      at_least_one(at_once * std::min(inner, columns) * traits.in_bytes);
  if (!is_held()) shape.traffic = traits.traffic(2, 1);
  // NVRTC of CUDA 13.0 keeps the packs of a batch in local memory: unlikely columns are written in a loop over elements.
  // Softmax of 256 × 65536 f32 takes 73 µs by the best policy, which has 96 bytes (H100, 2026-11-27).
  shape.local_array_bytes = static_cast<int>(packs_per_thread * pack * traits.in_bytes);
  return shape;
}

Spans CanonicalSoftmaxColumns::spans(std::int64_t max_blocks) const {
  if (!in_chunks()) return {};
  const std::int64_t outputs = at_least_one(outer * inner);
  const std::int64_t most_spans =
      std::min({kThreadSpans * row_lanes(), kSpansOfBlock * max_blocks / tiles(), traits.most_partials() / outputs});
  return Spans::of(chunks(), at_least_one(most_spans));
}

void CanonicalSoftmaxColumns::encode(std::int64_t max_blocks, std::span<void* const> buffers, void* workspace,
                                     LaunchList& launches) const {
  const Spans division = spans(max_blocks);
  with_accumulator(traits, [&]<class Acc>(Acc) {
    const SoftmaxColumnsArguments<Acc> arguments{.in = buffers[0],
                                                 .out = buffers[1],
                                                 .workspace = workspace,
                                                 .outer = outer,
                                                 .reduced = reduced,
                                                 .inner = inner,
                                                 .in_pitch = SoftmaxBase::pitch(problem, 0),
                                                 .out_pitch = SoftmaxBase::pitch(problem, 1),
                                                 .scale = softmax_factors<Acc>(problem),
                                                 .chunks = static_cast<unsigned>(division.count),
                                                 .run_levels = static_cast<unsigned>(division.levels)};
    for (int entry = 0; entry < (in_chunks() ? 3 : 1); ++entry)
      add_launch(launches, std::min(tiles() * division.count, max_blocks), block_threads, arguments).entry = entry;
  });
}

}  // namespace hone
