#include "runtime/families/softmax/softmax_family.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "runtime/families/softmax/softmax_reference.h"
#include "runtime/families/softmax/softmax_row_layout.h"
#include "runtime/jit/include_closure.h"

namespace hone {
namespace {

using Layout = SoftmaxRowLayout;
using Algorithm = SoftmaxRowPolicy::Algorithm;

}  // namespace

const ParameterSpace& SoftmaxFamily::space() const { return SoftmaxRowPolicy::space(); }

std::span<const SourceFile> SoftmaxFamily::sources() const {
  static const std::vector<SourceFile> sources =
      kernel_sources({"softmax.cuh", "softmax_tiles.cuh", "softmax_pipeline.cuh"});
  return sources;
}

std::string SoftmaxFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                    const DeviceFacts& facts) const {
  return Layout(problem_class.typical(), policy).is_valid(problem_class, facts);
}

std::string SoftmaxFamily::prune(const ProblemClass& problem_class, const Policy& policy,
                                 const DeviceFacts& facts) const {
  return Layout(problem_class.typical(), policy).prune(problem_class, facts);
}

Unit SoftmaxFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const Layout layout(problem, policy);
  const SoftmaxRowPolicy& row = layout.policy;
  const bool is_wide = needs_wide_index(problem, 0) || needs_wide_index(problem, 1);

  Unit unit;
  unit.name = fmt::format("{} index={} {}", to_string(problem_class), is_wide ? 64 : 32, space().to_string(policy));
  unit.source = fmt::format(
      "#include \"{header}\"\n\n"
      "using Types = hone::SoftmaxTypes<{types}, {index}, {log}, {aligned}>;\n"
      "using Kernel = hone::Softmax<Types, {threads}>;\n"
      "static_assert(Types::kElements == {pack} && sizeof(Types::State) == {state}, \"host and device disagree\");\n",
      fmt::arg("header", layout.algorithm == Algorithm::tiles      ? "softmax_tiles.cuh"
                         : layout.algorithm == Algorithm::pipeline ? "softmax_pipeline.cuh"
                                                    : "softmax.cuh"),
      fmt::arg("types", type_list(problem)), fmt::arg("index", is_wide ? "unsigned long long" : "unsigned"),
      fmt::arg("log", layout.traits.is_log), fmt::arg("aligned", layout.is_aligned),
      fmt::arg("threads", row.block_threads), fmt::arg("pack", layout.traits.pack_elements),
      fmt::arg("state", layout.traits.state_bytes()));

  const auto add_entry = [&](std::string_view body) {
    unit.entries.push_back(kernel_entry(body, std::to_string(row.block_threads)));
  };
  switch (layout.algorithm) {
    case Algorithm::group:
      add_entry(fmt::format("Kernel::groups<{}, {}, {}>", row.threads_per_row, layout.row_packs, layout.rows_at_once));
      break;
    case Algorithm::tiles:
      add_entry(fmt::format("hone::SoftmaxTiles<Types, {}, {}, {}, {}, {}>::run", row.block_threads,
                            row.threads_per_row, layout.least_each, layout.elements_each, layout.rows_at_once));
      break;
    case Algorithm::block:
      if (row.smem_kib > 0) add_entry("Kernel::block_in_shared");
      else add_entry(fmt::format("Kernel::block_in_registers<{}>", row.packs_per_thread));
      break;
    case Algorithm::cluster:
      if (row.smem_kib > 0) add_entry(fmt::format("Kernel::cluster_in_shared<{}>", row.cluster_blocks));
      else add_entry(fmt::format("Kernel::cluster_in_registers<{}, {}>", row.cluster_blocks, row.packs_per_thread));
      break;
    case Algorithm::chunks:
      add_entry(fmt::format("Kernel::publish_chunks<{}>", row.packs_per_thread));
      add_entry(fmt::format("Kernel::write_chunks<{}>", row.packs_per_thread));
      break;
    case Algorithm::pipeline:
      unit.source += fmt::format(
          "using Pipeline = hone::SoftmaxPipeline<Types, {}, {}>;\n"
          "static_assert(Pipeline::kRing == {}, \"host and device disagree\");\n",
          row.block_threads, row.packs_per_thread, Layout::kPipelinedRows);
      add_entry("Pipeline::run");
      break;
  }
  return unit;
}

WorkShape SoftmaxFamily::shape(const Problem& problem, const Policy& policy) const {
  const Layout layout(problem, policy);
  const SoftmaxRowPolicy& row = layout.policy;
  WorkShape shape{.block_threads = row.block_threads,
                  .dynamic_smem_bytes = static_cast<std::uint32_t>(layout.smem_bytes(layout.columns)),
                  .tiles = layout.tiles(),
                  .launches = layout.algorithm == Algorithm::chunks ? 2 : 1,
                  .dependent_launch = true,
                  .cluster_blocks = row.cluster_blocks,
                  .independent_blocks = !row.cuts_rows()};
  const std::int64_t row_bytes = layout.columns * layout.traits.in_bytes;
  const double read_share = static_cast<double>(layout.traits.in_bytes) /
                            static_cast<double>(layout.traits.in_bytes + layout.traits.out_bytes);
  if (row.cuts_rows()) {
    shape.bytes_in_flight_per_block = row.block_threads * row.packs_per_thread * layout.pack_in_bytes();
    shape.traffic = layout.algorithm == Algorithm::chunks ? 1 + read_share : 1;
  } else if (layout.algorithm == Algorithm::group || layout.algorithm == Algorithm::tiles) {
    shape.bytes_in_flight_per_block = layout.tile_rows() * row_bytes;
  } else {
    const std::int64_t packs = std::max<std::int64_t>(1, layout.packs());
    const std::int64_t held = std::min(packs, layout.held_packs(packs));
    shape.bytes_in_flight_per_block = held * layout.pack_in_bytes() / row.cluster_blocks;
    shape.traffic = 1 + read_share * static_cast<double>(packs - held) / static_cast<double>(packs);
  }
  return shape;
}

/// However many rows and chunks a member has, chunks() keeps their partial results within
/// SoftmaxTraits::most_partials().
std::size_t SoftmaxFamily::workspace_bytes(const ProblemClass&, const Candidate& candidate) const {
  return candidate.policy.as<SoftmaxRowPolicy>().cuts_rows() ? kWorkspaceBytes : 0;
}

void SoftmaxFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                           void* workspace, LaunchList& launches) const {
  const Layout layout(problem, candidate.policy);
  const SoftmaxRowPolicy& row = layout.policy;
  const std::int64_t max_blocks = candidate.geometry.max_blocks;
  Launch launch;
  launch.grid.x = static_cast<unsigned>(layout.grid(max_blocks));
  launch.block.x = static_cast<unsigned>(row.block_threads);
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(layout.smem_bytes(layout.columns));
  launch.cluster_blocks = static_cast<unsigned>(row.cluster_blocks);
  launch.dependent_launch = true;
  with_accumulator(layout.traits, [&]<class Acc>(Acc) {
    SoftmaxArguments<Acc> arguments{.in = buffers[0],
                                    .out = buffers[1],
                                    .workspace = workspace,
                                    .rows = static_cast<std::uint64_t>(layout.rows),
                                    .columns = static_cast<std::uint64_t>(layout.columns),
                                    .in_pitch = pitch(problem, 0),
                                    .out_pitch = pitch(problem, 1),
                                    .scale = softmax_factors<Acc>(problem),
                                    .chunks = 0,
                                    .packs_per_thread = 0,
                                    .lag = 0};
    if (row.cuts_rows()) arguments.chunks = static_cast<unsigned>(layout.chunks(max_blocks));
    if (layout.algorithm == Algorithm::pipeline) arguments.lag = static_cast<unsigned>(layout.lag(max_blocks));
    if (row.smem_kib > 0 && (layout.algorithm == Algorithm::block || layout.algorithm == Algorithm::cluster))
      arguments.packs_per_thread = static_cast<unsigned>(layout.shared_packs(layout.packs()));
    launch.arguments.push(arguments);
  });
  const int count = layout.algorithm == Algorithm::chunks ? 2 : 1;
  for (launch.entry = 0; launch.entry < count; ++launch.entry) launches.add() = launch;
}

std::vector<ElementRange> SoftmaxFamily::verified_parts(const Problem& problem, int) const {
  constexpr std::int64_t kElements = 1 << 15;  // to compute, of all rows together
  constexpr std::int64_t kPiece = 1024;        // to compare, at the beginning and end of a row and in its middle
  const std::int64_t rows = problem.extents[0];
  const std::int64_t columns = problem.extents[1];
  if (rows == 0 || columns == 0) return {};
  const std::int64_t count = std::min(rows, std::max<std::int64_t>(3, kElements / columns));
  std::vector<std::int64_t> chosen{0, rows - 1};
  const std::int64_t run = std::max<std::int64_t>(1, kPiece / columns);  // short rows side by side: each part is a copy
  std::mt19937_64 random(static_cast<std::uint64_t>(rows * 31 + columns));
  while (count < rows && static_cast<std::int64_t>(chosen.size()) < count) {
    const auto first = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows));
    for (std::int64_t row = first; row < std::min(rows, first + run); ++row) chosen.push_back(row);
  }
  if (count == rows) {
    chosen.resize(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) chosen[static_cast<std::size_t>(row)] = row;
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());

  std::vector<ElementRange> parts;
  const auto add = [&](std::int64_t first, std::int64_t length) {
    if (!parts.empty() && parts.back().first + parts.back().count == first) parts.back().count += length;
    else parts.push_back({first, length});
  };
  for (const std::int64_t row : chosen) {
    const std::int64_t first = row * pitch(problem, 1);
    if (columns <= 3 * kPiece) {
      add(first, columns);
    } else {
      add(first, kPiece);
      add(first + columns / 2, kPiece);
      add(first + columns - kPiece, kPiece);
    }
  }
  return parts;
}

std::string SoftmaxFamily::verify(const Problem& problem, const Candidate& candidate,
                                  std::span<const std::vector<std::byte>> patterns,
                                  std::span<const std::vector<std::byte>> outputs) const {
  const Layout layout(problem, candidate.policy);
  // A thread's packs one after the other, trees in a pack, a tile, a warp, a block, a cluster; then the chunks.
  const std::int64_t threads =
      layout.row_threads * (layout.policy.cuts_rows() ? layout.chunks(candidate.geometry.max_blocks) : 1);
  const std::int64_t rounds = divide_up(std::max<std::int64_t>(layout.packs(), 1), threads) + layout.elements_each;
  const softmax_reference::Computation computation{.dtype = layout.traits.in,
                                                   .result = layout.traits.out,
                                                   .accumulator = layout.traits.accumulator,
                                                   .scale = problem.scalars[0].value_or(1),
                                                   .is_log = layout.traits.is_log,
                                                   .chain = rounds + 48};
  const std::int64_t in_pitch = pitch(problem, 0);
  const std::int64_t out_pitch = pitch(problem, 1);
  const auto line_of = [&](std::int64_t element) {
    const std::int64_t row = element / out_pitch;
    return softmax_reference::Line{
        .elements = layout.columns, .in_first = row * in_pitch, .out_first = row * out_pitch};
  };
  const std::vector<ElementRange> parts = verified_parts(problem, 1);
  return softmax_reference::verify(computation, patterns[0], parts, line_of, outputs[0]);
}

const KernelFamily& softmax_family() {
  static const SoftmaxFamily family;
  return family;
}

}  // namespace hone
