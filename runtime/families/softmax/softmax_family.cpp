#include "runtime/families/softmax/softmax_family.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/families/softmax/softmax_row_layout.h"
#include "runtime/families/softmax/softmax_verifier.h"
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
    case Algorithm::cluster:
      if (row.smem_kib > 0) add_entry(fmt::format("Kernel::in_shared<{}>", row.cluster_blocks));
      else add_entry(fmt::format("Kernel::in_registers<{}, {}>", row.cluster_blocks, row.packs_per_thread));
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

const Verifier& SoftmaxFamily::verifier() const {
  static const SoftmaxRowsVerifier verifier;
  return verifier;
}

const KernelFamily& softmax_family() {
  static const SoftmaxFamily family;
  return family;
}

}  // namespace hone
