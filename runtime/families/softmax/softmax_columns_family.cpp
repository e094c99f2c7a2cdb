#include "runtime/families/softmax/softmax_columns_family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/jit/include_closure.h"

namespace hone {
namespace {

constexpr std::int64_t kMostStaticSmemBytes = 48 * 1024;

constexpr std::int64_t kMostElementsOfLargeBlocks = 16;

/// Columns of less than this are no work for several blocks.
constexpr std::int64_t kLeastSharedRows = 64;

struct Layout {
  SoftmaxColumnPolicy policy;
  SoftmaxTraits traits;
  std::int64_t outer, reduced, inner;
  std::int64_t elements;  ///< of a pack

  Layout(const Problem& problem, const Policy& of, std::int64_t pack_elements)
      : policy(of.as<SoftmaxColumnPolicy>()),
        traits(problem),
        outer(problem.extents[0]),
        reduced(problem.extents[1]),
        inner(problem.extents[2]),
        elements(pack_elements) {}

  std::int64_t tile_columns() const { return policy.lanes * elements; }
  std::int64_t column_tiles(std::int64_t of_inner) const { return divide_up(of_inner, tile_columns()); }
  std::int64_t tiles() const { return std::max<std::int64_t>(1, outer * column_tiles(inner)); }

  /// Rows that a block has in registers, or loads at once.
  std::int64_t held_rows() const { return policy.row_lanes() * policy.packs_per_thread; }

  /// Shared memory of the kernels: states that meet, those of a cluster's blocks, and the combined ones.
  std::int64_t static_smem_bytes() const {
    const std::int64_t meeting =
        std::max<std::int64_t>(policy.block_threads / 32, policy.block_threads / policy.lanes);
    const std::int64_t places = policy.lanes < 32 ? policy.block_threads / 32 : meeting;
    const std::int64_t of_cluster = policy.cluster_blocks > 1 ? policy.cluster_blocks : 0;
    return (places + of_cluster + 1) * tile_columns() * static_cast<std::int64_t>(traits.state_bytes());
  }

  /// Partial states of one chunk of all tiles.
  std::int64_t partials_per_chunk(std::int64_t of_outer, std::int64_t of_inner) const {
    return std::max<std::int64_t>(1, of_outer * column_tiles(of_inner) * tile_columns());
  }

  std::int64_t most_chunks() const {
    const std::int64_t of_rows = divide_up(std::max<std::int64_t>(1, reduced), held_rows());
    return std::max<std::int64_t>(1, std::min(of_rows, traits.most_partials() / partials_per_chunk(outer, inner)));
  }

  std::int64_t work_items() const {
    return tiles() * (policy.in_chunks() ? most_chunks() : std::int64_t{policy.cluster_blocks});
  }

  std::int64_t grid(std::int64_t max_blocks) const {
    const std::int64_t cluster = policy.cluster_blocks;
    return std::max(cluster, std::min(max_blocks, work_items()) / cluster * cluster);
  }

  std::int64_t chunks(std::int64_t max_blocks) const { return best_chunks(grid(max_blocks), tiles(), most_chunks()); }
};

}  // namespace

const ParameterSpace& SoftmaxColumnPolicy::space() {
  using P = SoftmaxColumnPolicy;
  static const ParameterSpace space = space_of<P>(
      PolicyField{&P::scope, scope_parameter({Scope::block, Scope::cluster, Scope::grid})},
      PolicyField{&P::cluster_blocks,
                  ordinal("cluster_blocks", {2, 4, 8, 16}).only_if("scope", {Scope::cluster}).otherwise(1)},
      PolicyField{&P::lanes, ordinal("lanes", {2, 4, 8, 16, 32, 128})},
      PolicyField{&P::block_threads, ordinal("block_threads", {256, 512, 1024})},
      PolicyField{&P::packs_per_thread, ordinal("packs_per_thread", {1, 2, 4, 8})});
  return space;
}

std::span<const SourceFile> SoftmaxColumnsFamily::sources() const {
  static const std::vector<SourceFile> sources = kernel_sources({"softmax_columns.cuh"});
  return sources;
}

std::string SoftmaxColumnsFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                           const DeviceFacts& facts) const {
  const Problem& problem = problem_class.typical();
  const Layout layout(problem, policy, pack_elements(problem));
  const SoftmaxColumnPolicy& column = layout.policy;
  if (column.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", column.block_threads, facts.max_threads_per_block);
  if (column.cluster_blocks > std::max(1, facts.max_cluster_blocks))
    return fmt::format("clusters of {} blocks, the device allows {}", column.cluster_blocks, facts.max_cluster_blocks);
  if (layout.static_smem_bytes() > kMostStaticSmemBytes)
    return fmt::format("needs {} bytes of shared memory, kernels have {}", layout.static_smem_bytes(),
                       kMostStaticSmemBytes);
  if (!column.in_chunks()) return "";
  const std::int64_t partials =
      layout.partials_per_chunk(problem_class.sizes()[0].last, problem_class.sizes()[2].last);
  if (2 * partials > layout.traits.most_partials())
    return fmt::format("{} columns have more partial results than the workspace", partials);
  return "";
}

std::string SoftmaxColumnsFamily::prune(const ProblemClass& problem_class, const Policy& policy,
                                        const DeviceFacts&) const {
  const Problem& problem = problem_class.typical();
  const Layout layout(problem, policy, pack_elements(problem));
  const SoftmaxColumnPolicy& column = layout.policy;
  // 1024 threads have 64 registers each: states of f64, or more than 16 elements, spill 80 to 168 bytes (sm_90, CUDA
  // 13.0).
  if (column.block_threads > 512 && (layout.traits.accumulator == DType::f64 ||
                                     column.packs_per_thread * layout.elements > kMostElementsOfLargeBlocks))
    return "a thread of so many has too few registers for its elements and their sums";
  const std::int64_t row_packs = divide_up(center_of(problem, 2), layout.elements);
  if (column.lanes > 2 && column.lanes > row_packs)
    return fmt::format("rows have {} packs for {} lanes", row_packs, column.lanes);
  const std::int64_t rows = center_of(problem, 1);
  const bool shares = column.in_chunks() || column.cluster_blocks > 1;
  if (shares && rows < kLeastSharedRows) return fmt::format("{} rows are too few for several blocks", rows);
  if (column.in_chunks()) return "";
  // What always works: a small block with its rows read twice, or mostly idle where there are hardly any.
  const bool is_last_resort = column.cluster_blocks == 1 && column.block_threads == 256 &&
                              (column.packs_per_thread == 4 || column.packs_per_thread == 1);
  if (is_last_resort) return "";
  if (layout.held_rows() < rows) return fmt::format("holds {} of {} rows", layout.held_rows(), rows);
  if (layout.held_rows() > 2 * rows) return fmt::format("has room for {} rows, there are {}", layout.held_rows(), rows);
  return "";
}

Unit SoftmaxColumnsFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const Layout layout(problem, policy, pack_elements(problem));
  const SoftmaxColumnPolicy& column = layout.policy;
  Unit unit;
  unit.name = fmt::format("{} {}", to_string(problem_class), space().to_string(policy));
  unit.source = fmt::format(
      "#include \"softmax_columns.cuh\"\n\n"
      "using Types = hone::ColumnTypes<{types}, {log}, {elements}>;\n"
      "using Kernel = hone::SoftmaxColumns<Types, {threads}, {lanes}, {packs}>;\n"
      "static_assert(Kernel::kColumns == {columns} && sizeof(Types::State) == {state}, \"host and device "
      "disagree\");\n",
      fmt::arg("types", type_list(problem)), fmt::arg("log", layout.traits.is_log),
      fmt::arg("elements", layout.elements), fmt::arg("threads", column.block_threads), fmt::arg("lanes", column.lanes),
      fmt::arg("packs", column.packs_per_thread), fmt::arg("columns", layout.tile_columns()),
      fmt::arg("state", layout.traits.state_bytes()));
  const std::string bounds = std::to_string(column.block_threads);
  if (column.in_chunks()) {
    unit.entries = {kernel_entry("Kernel::publish_chunks", bounds), kernel_entry("Kernel::write_chunks", bounds)};
  } else {
    unit.entries = {kernel_entry(fmt::format("Kernel::whole<{}>", column.cluster_blocks), bounds)};
  }
  return unit;
}

WorkShape SoftmaxColumnsFamily::shape(const Problem& problem, const Policy& policy) const {
  const Layout layout(problem, policy, pack_elements(problem));
  const SoftmaxColumnPolicy& column = layout.policy;
  const double read_share = static_cast<double>(layout.traits.in_bytes) /
                            static_cast<double>(layout.traits.in_bytes + layout.traits.out_bytes);
  const std::int64_t rows = std::max<std::int64_t>(1, layout.reduced);
  const std::int64_t held = column.in_chunks() ? 0 : std::min(rows, layout.held_rows());
  const std::int64_t at_once = std::min(rows, layout.held_rows()) * std::min(layout.inner, layout.tile_columns());
  return {.block_threads = column.block_threads,
          .tiles = layout.work_items(),
          .bytes_in_flight_per_block = at_once * layout.traits.in_bytes / column.cluster_blocks,
          .launches = column.in_chunks() ? 2 : 1,
          .dependent_launch = true,
          .cluster_blocks = column.cluster_blocks,
          .traffic = 1 + read_share * static_cast<double>(rows - held) / static_cast<double>(rows),
          .independent_blocks = !column.in_chunks()};
}

/// However many chunks a member has, most_chunks() keeps their partial results within SoftmaxTraits::most_partials().
std::size_t SoftmaxColumnsFamily::workspace_bytes(const ProblemClass&, const Candidate& candidate) const {
  return candidate.policy.as<SoftmaxColumnPolicy>().in_chunks() ? kWorkspaceBytes : 0;
}

void SoftmaxColumnsFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                                  void* workspace, LaunchList& launches) const {
  const Layout layout(problem, candidate.policy, pack_elements(problem));
  const bool has_chunks = layout.policy.in_chunks();
  Launch launch;
  launch.grid.x = static_cast<unsigned>(layout.grid(candidate.geometry.max_blocks));
  launch.block.x = static_cast<unsigned>(layout.policy.block_threads);
  launch.cluster_blocks = static_cast<unsigned>(layout.policy.cluster_blocks);
  launch.dependent_launch = true;
  with_accumulator(layout.traits, [&]<class Acc>(Acc) {
    launch.arguments.push(SoftmaxColumnsArguments<Acc>{
        .in = buffers[0],
        .out = buffers[1],
        .workspace = workspace,
        .outer = problem.extents[0],
        .reduced = problem.extents[1],
        .inner = problem.extents[2],
        .in_pitch = pitch(problem, 0),
        .out_pitch = pitch(problem, 1),
        .scale = softmax_factors<Acc>(problem),
        .chunks = has_chunks ? static_cast<unsigned>(layout.chunks(candidate.geometry.max_blocks)) : 0});
  });
  for (launch.entry = 0; launch.entry < (has_chunks ? 2 : 1); ++launch.entry) launches.add() = launch;
}

/// A few columns, in the rows at the beginning, at the end and here and there between.
std::int64_t SoftmaxColumnsFamily::longest_chain(const Problem& problem, const Candidate& candidate) const {
  const Layout layout(problem, candidate.policy, pack_elements(problem));
  // A thread's rows one after the other, then lanes, warps, blocks and chunks, some of them in a row as well.
  const std::int64_t chunks = layout.policy.in_chunks() ? layout.chunks(candidate.geometry.max_blocks) : 1;
  const std::int64_t row_lanes = layout.policy.row_lanes();
  return divide_up(layout.reduced, row_lanes * chunks) + divide_up(chunks, row_lanes) +
         layout.policy.block_threads / std::min(32, layout.policy.lanes) + 48;
}

const KernelFamily& softmax_columns_family() {
  static const SoftmaxColumnsFamily family;
  return family;
}

}  // namespace hone
