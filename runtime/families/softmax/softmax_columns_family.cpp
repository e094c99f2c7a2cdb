#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/softmax/softmax_base.h"
#include "runtime/families/work_division.h"

namespace hone {
namespace {

/// The policies of the softmax over columns. A grid cuts columns into chunks that are read twice.
struct SoftmaxColumnPolicy {
  Scope scope = Scope::block;           ///< of a tile of columns
  std::int32_t cluster_blocks = 1;
  std::int32_t lanes = 32;              ///< threads side by side, a pack of columns each
  std::int32_t block_threads = 256;
  std::int32_t packs_per_thread = 1;    ///< rows that a thread holds; of chunks, loads at once
  MinBlocks min_blocks = MinBlocks::unset;

  bool in_chunks() const { return scope == Scope::grid; }
  /// Threads that share a column.
  std::int64_t row_lanes() const { return std::int64_t{block_threads / lanes} * cluster_blocks; }

  static const ParameterSpace& space();
};

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

const ParameterSpace& SoftmaxColumnPolicy::space() {
  using P = SoftmaxColumnPolicy;
  static const ParameterSpace space = space_of<P>(
      PolicyField{&P::scope, scope_parameter({Scope::block, Scope::cluster, Scope::grid})},
      PolicyField{&P::cluster_blocks,
                  ordinal("cluster_blocks", {2, 4, 8, 16}).only_if("scope", {Scope::cluster}).otherwise(1)},
      PolicyField{&P::lanes, ordinal("lanes", {2, 4, 8, 16, 32, 128})},
      PolicyField{&P::block_threads, ordinal("block_threads", {256, 512, 1024})},
      PolicyField{&P::packs_per_thread, ordinal("packs_per_thread", {1, 2, 4, 8})},
      PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::unset, MinBlocks::one})});
  return space;
}

struct View : Layout {
  const ProblemClass& problem_class;
  const DeviceFacts& facts;
  std::int64_t rows = center_of(problem_class.typical(), 1);
  std::int64_t row_packs = divide_up(center_of(problem_class.typical(), 2), elements);

  View(const ProblemClass& of, const Policy& chosen, const DeviceFacts& facts_)
      : Layout(of.typical(), chosen, SoftmaxBase::pack_elements(of.typical())), problem_class(of), facts(facts_) {}

  /// The policy that always works: a small block with its rows read twice, or mostly idle where there are hardly any.
  bool is_last_resort() const {
    return policy.cluster_blocks == 1 && policy.block_threads == 256 &&
           (policy.packs_per_thread == 4 || policy.packs_per_thread == 1);
  }
  bool may_be_held() const { return !policy.in_chunks() && !is_last_resort(); }
};

constexpr std::array<PruneRule<View>, 7> kPruneRules{{
    kNoLaunchBounds<View>,
    {"the loads of a thread of few packs, or of 1024 threads, are in flight in any case",
     "NVRTC of CUDA 13.0, sm_90, 2026-11-24: none of 13 pairs of units of f32 with 1 to 4 packs changes; 8 not seen",
     [](const View& v) {
       return v.policy.min_blocks == MinBlocks::one && (v.policy.packs_per_thread < 8 || v.policy.block_threads > 512);
     }},
    {"a thread of so many has too few registers for its elements and their sums",
     "ptxas of CUDA 13.0, sm_90: states of f64, or of more than 16 elements, of 1024 threads spill 80 to 168 bytes",
     [](const View& v) {
       return v.policy.block_threads > 512 && (v.traits.accumulator == DType::f64 ||
                                               v.policy.packs_per_thread * v.elements > kMostElementsOfLargeBlocks);
     }},
    {"rows have fewer packs than lanes", kNotMeasured,
     [](const View& v) { return v.policy.lanes > 2 && v.policy.lanes > v.row_packs; }},
    {"there are too few rows for several blocks", kNotMeasured,
     [](const View& v) { return (v.policy.in_chunks() || v.policy.cluster_blocks > 1) && v.rows < kLeastSharedRows; }},
    {"registers do not hold the rows", kNotMeasured,
     [](const View& v) { return v.may_be_held() && v.held_rows() < v.rows; }},
    {"registers have room for twice the rows", kNotMeasured,
     [](const View& v) { return v.may_be_held() && v.held_rows() > 2 * v.rows; }},
}};

/// Extents {outer, reduced, inner}; pitches between rows of `inner` elements.
class SoftmaxColumnsFamily final : public SoftmaxBase {
 public:
  SoftmaxColumnsFamily()
      : SoftmaxBase("softmax_columns", SoftmaxColumnPolicy::space(), {"outer", "reduced", "inner"},
                    {"softmax_columns.cuh"}) {}

  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override {
    return pruned_by(kPruneRules, View(problem_class, policy, facts));
  }
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const override;
};

Reason SoftmaxColumnsFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                      const DeviceFacts& facts) const {
  const View view(problem_class, policy, facts);
  const std::int64_t partials = view.partials_per_chunk(problem_class.sizes()[0].last, problem_class.sizes()[2].last);
  return first_reason({check_blocks(facts, view.policy.block_threads, view.policy.cluster_blocks),
                       check_static_smem(view.static_smem_bytes()),
                       reason_if(view.policy.in_chunks() && 2 * partials > view.traits.most_partials(),
                                 "columns have more partial results than the workspace")});
}

Unit SoftmaxColumnsFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const Layout layout(problem, policy, pack_elements(problem));
  const SoftmaxColumnPolicy& column = layout.policy;
  Unit unit;
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
  const std::string bounds = launch_bounds(column.block_threads, column.min_blocks);
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
  const std::int64_t max_blocks = candidate.geometry.max_blocks;
  with_accumulator(layout.traits, [&]<class Acc>(Acc) {
    const SoftmaxColumnsArguments<Acc> arguments{
        .in = buffers[0],
        .out = buffers[1],
        .workspace = workspace,
        .outer = problem.extents[0],
        .reduced = problem.extents[1],
        .inner = problem.extents[2],
        .in_pitch = pitch(problem, 0),
        .out_pitch = pitch(problem, 1),
        .scale = softmax_factors<Acc>(problem),
        .chunks = has_chunks ? static_cast<unsigned>(layout.chunks(max_blocks)) : 0};
    for (int entry = 0; entry < (has_chunks ? 2 : 1); ++entry) {
      Launch& launch = add_launch(launches, layout.grid(max_blocks), layout.policy.block_threads, arguments);
      launch.entry = entry;
      launch.cluster_blocks = static_cast<unsigned>(layout.policy.cluster_blocks);
    }
  });
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

}  // namespace

const KernelFamily& softmax_columns_family() {
  static const SoftmaxColumnsFamily family;
  return family;
}

}  // namespace hone
