#include "runtime/families/reduce/reduction_family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "kernel_templates/reduce_arguments.h"
#include "runtime/families/counts.h"
#include "runtime/families/reduce/canonical_kernels.h"

namespace hone {
namespace {

constexpr int kNarrowestLdg256 = 100;  ///< compute capability × 10 from which a load has 32 bytes

/// A pack takes a register for every 4 bytes, and small elements may take one each.
constexpr std::int64_t kMostBytesPerBlock = 64 * 1024, kMostCanonicalBytesPerBlock = 128 * 1024;
constexpr std::int64_t kMostBytesOfSmallElements = 64;  ///< of a thread, also where it has 42 registers

/// The bytes that a thread loads before it combines any.
std::int64_t thread_bytes(const Problem& problem, const ReducePolicy& policy) {
  return policy.unroll * (is_canonical(problem) ? kLaneChunkBytes : std::int64_t{policy.vector_bytes});
}

std::int64_t bytes_per_tile(const Problem& problem, const ReducePolicy& policy) {
  return policy.block_threads * thread_bytes(problem, policy);
}

using View = PolicyView<ReducePolicy>;

constexpr std::array<PruneRule<View>, 4> kPruneRules{{
    {"the tile of a block is more than its registers hold", "ptxas of CUDA 13.0, sm_90, 2026-11: spills",
     [](const View& v) {
       const std::int64_t bytes = thread_bytes(v.problem, v);
       if (is_canonical(v.problem)) return bytes * v.block_threads > kMostCanonicalBytesPerBlock;
       return bytes * v.block_threads > kMostBytesPerBlock ||
              (element_bytes(v.problem) <= 2 && bytes > kMostBytesOfSmallElements);
     }},
    {"narrower vectors than there might be",
     "H100, CUDA 13.0, 2026-11-24, all valid policies of 6 sums (parameter_effects): the best with 4 bytes 0.6 to "
     "3.6 % behind, with 8 bytes 0.2 to 2.1; host, 2 cores, 2026-11: sum of 2^21 f32 2576 µs with 4 bytes, 1371 with "
     "16, 974 with 32",
     [](const View& v) {
       const bool is_pair = v.problem.family->buffers(v.problem)[1].is_input;
       const auto aligned_bytes = std::max<std::int64_t>(v.problem.alignment, element_bytes(v.problem));
       return v.vector_bytes < (is_pair ? aligned_bytes : kMaxAlignment);
     }},
    {"1536 threads on an SM leave each 42 registers, too few for the tile",
     "ptxas of CUDA 13.0, sm_90, 2026-11-24: of mean_variance 10 of 94 units spilled, of logsumexp f32 2 of 12",
     [](const View& v) {
       const bool converts = is_canonical(v.problem) && element_bytes(v.problem) <= 2;
       return v.min_blocks == MinBlocks::three_quarters &&
              (converts || thread_bytes(v.problem, v) > kMostBytesOfSmallElements);
     }},
    kNoLaunchBounds<View, MinBlocks::one>,
}};

/// "float, long long"
std::string output_types(const std::vector<BufferSpec>& buffers) {
  std::string types;
  for (const BufferSpec& buffer : buffers)
    if (!buffer.is_input) types += fmt::format("{}{}", types.empty() ? "" : ", ", info(buffer.dtype).cuda_name);
  return types;
}

/// Returns true if blocks leave their partials in the workspace.
bool uses_workspace(const ReducePolicy& policy) {
  return policy.finish == ReducePolicy::Finish::last_block || policy.finish == ReducePolicy::Finish::second_kernel;
}

Spans spans_of(const ReducePolicy& policy, std::int64_t tiles) {
  const bool is_one_block = policy.finish == ReducePolicy::Finish::one_block;
  if (uses_workspace(policy)) return Spans::of(tiles, most_partials(policy.block_threads));
  return Spans::of(tiles, is_one_block ? kMostSpanRounds : policy.cluster_blocks);
}

}  // namespace

const ParameterSpace& ReducePolicy::space() {
  using P = ReducePolicy;
  static const ParameterSpace space = space_of<P>(
      PolicyField{&P::block_threads, ordinal("block_threads", {128, 256, 512, 1024})},
      PolicyField{&P::vector_bytes, ordinal("vector_bytes", {16, 4, 8, 32, 2, 1})},
      PolicyField{&P::unroll, ordinal("unroll", {1, 2, 4, 8})},
      PolicyField{&P::tail, tail_parameter({Tail::warp, Tail::shared})},
      PolicyField{&P::finish, categorical("finish", {"one_block", "cluster", "last_block", "second_kernel"})},
      PolicyField{&P::cluster_blocks,
                  ordinal("cluster_blocks", {8, 16}).only_if("finish", {Finish::cluster}).otherwise(1)},
      PolicyField{&P::min_blocks, min_blocks_parameter({MinBlocks::one, MinBlocks::unset, MinBlocks::three_quarters})});
  return space;
}

std::uint32_t peeled_alignment(DType dtype, std::uint32_t alignment) {
  return alignment < kMaxAlignment ? static_cast<std::uint32_t>(info(dtype).size_bytes) : kMaxAlignment;
}

std::int64_t ReductionFamily::widest_vector_bytes(const Problem& problem) const {
  constexpr std::int64_t kWidest = 32;
  return inputs(problem) == 1 ? kWidest : std::max<std::int64_t>(problem.alignment, element_bytes(problem));
}

std::int64_t ReductionFamily::tiles_of(const Problem& problem, const ReducePolicy& policy) const {
  const std::int64_t tile = bytes_per_tile(problem, policy);
  return at_least_one(divide_up(problem.extents[0] * element_bytes(problem), tile));
}

std::int64_t ReductionFamily::grid_of(const Problem& problem, const Candidate& candidate) const {
  const auto policy = candidate.policy.as<ReducePolicy>();
  if (policy.cluster_blocks > 1) return policy.cluster_blocks;
  return std::min(candidate.geometry.max_blocks, tiles_of(problem, policy));
}

std::int64_t ReductionFamily::longest_chain(const Problem& problem, const Candidate& candidate) const {
  const auto reduce = candidate.policy.as<ReducePolicy>();
  const std::int64_t grid = grid_of(problem, candidate);
  const std::int64_t rounds = divide_up(tiles_of(problem, reduce), grid);
  const std::int64_t tile_levels = 8;  // of 8 packs of 32 elements
  const std::int64_t block_levels = reduce.tail == Tail::warp ? 10 : reduce.block_threads / 32 + 32;
  return tile_levels + rounds + reduce.unroll + 1 + 2 * block_levels + grid / reduce.block_threads + 1;
}

std::string ReductionFamily::refuse(const Problem& problem) const {
  const std::int64_t n = problem.extents[0];
  if (n < 0) return fmt::format("{} was asked for n = {}, but a size cannot be negative", name(), n);
  const std::int64_t most = kMostBytes / element_bytes(problem);
  if (n > most)
    return fmt::format("{} was asked for n = {}, but no memory holds more than {} elements of {}", name(), n, most,
                       info(problem.dtype).name);
  return "";
}

Reason ReductionFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                 const DeviceFacts& facts) const {
  const auto reduce = policy.as<ReducePolicy>();
  const Problem& problem = problem_class.typical();
  const bool has_wide_loads = is_host(facts) || facts.compute_capability >= kNarrowestLdg256;
  const auto smem_bytes = static_cast<std::int64_t>(partial_bytes(problem)) * reduce.block_threads;
  return first_reason(
      {check_blocks(facts, reduce.block_threads, reduce.cluster_blocks),
       reason_if(reduce.min_blocks == MinBlocks::three_quarters && reduce.block_threads > 512,
                 "1536 threads hold one block: that is min_blocks=1"),
       reason_if(reduce.vector_bytes < element_bytes(problem), "vectors are narrower than an element"),
       reason_if(reduce.vector_bytes < 4 && widest_vector_bytes(problem) >= 4, "vectors are narrower than a word"),
       reason_if(reduce.vector_bytes > widest_vector_bytes(problem),
                 "vectors are wider than the arrays are aligned alike"),
       reason_if(reduce.vector_bytes > static_cast<int>(kMaxAlignment) && !has_wide_loads,
                 "vectors are wider than a load of the device"),
       reason_if(is_canonical(problem) && reduce.vector_bytes < 4 && reduce.vector_bytes > element_bytes(problem),
                 "vectors of several elements are narrower than a word"),
       reason_if(is_canonical(problem) && reduce.tail != Tail::warp, "the canonical tree is made by warp shuffles"),
       reason_if(is_canonical(problem) && has_too_many_values(problem, reduce.unroll, reduce.vector_bytes),
                 "a warp folds at most 32 values of a lane at once"),
       check_static_smem(reduce.tail == Tail::shared ? smem_bytes : 0)});
}

Reason ReductionFamily::prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const {
  return pruned_by(kPruneRules, View(problem_class, policy, facts));
}

Unit ReductionFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const auto reduce = policy.as<ReducePolicy>();
  const OperationSource op = operation(problem);

  const std::string_view arrays = inputs(problem) == 2 ? "TwoArrays" : "OneArray";
  const std::string parameters =
      fmt::format("Op, hone::{}, hone::Outputs<{}>, {}, {}, {}", arrays, output_types(buffers(problem)),
                  reduce.block_threads, reduce.vector_bytes, reduce.unroll);

  Unit unit;
  unit.source = op.includes;
  if (is_canonical(problem))
    unit.source += fmt::format(
        "#include \"canonical_reduce.cuh\"\n\n"
        "using Op = hone::Canonical<{}>;\n"
        "using Kernel = hone::CanonicalReduce<{}>;\n",
        op.type, parameters);
  else
    unit.source += fmt::format(
        "#include \"reduce.cuh\"\n\n"
        "using Op = {};\n"
        "using Kernel = hone::Reduce<{},\n"
        "                            hone::Tail::{}>;\n",
        op.type, parameters, tail_parameter[reduce.tail]);
  unit.source += fmt::format(
      "static_assert(Kernel::kTileBytes == {} && sizeof(Op::State) == {} &&\n"
      "              hone::kWorkspaceHeaderBytes == {}, \"host and device disagree on the policy\");\n",
      bytes_per_tile(problem, reduce), partial_bytes(problem), kWorkspaceHeaderBytes);

  const auto add_entry = [&](std::string_view body) {
    unit.entries.push_back(kernel_entry(body, reduce.block_threads, reduce.min_blocks));
  };
  switch (reduce.finish) {
    case ReducePolicy::Finish::one_block:
    case ReducePolicy::Finish::cluster:
      add_entry(fmt::format("Kernel::reduce<hone::Grid::none, {}>", reduce.cluster_blocks));
      break;
    case ReducePolicy::Finish::last_block: add_entry("Kernel::reduce<hone::Grid::last_block>"); break;
    case ReducePolicy::Finish::second_kernel:
      add_entry("Kernel::reduce<hone::Grid::publish>");
      add_entry("Kernel::finish");
      break;
  }
  return unit;
}

WorkShape ReductionFamily::shape(const Problem& problem, const Policy& policy) const {
  const auto reduce = policy.as<ReducePolicy>();
  return {.block_threads = reduce.block_threads,
          .dynamic_smem_bytes = 0,
          .tiles = tiles_of(problem, reduce),
          .bytes_in_flight_per_block = bytes_per_tile(problem, reduce) * inputs(problem),
          .one_block = reduce.finish == ReducePolicy::Finish::one_block || reduce.cluster_blocks > 1,
          .launches = reduce.finish == ReducePolicy::Finish::second_kernel ? 2 : 1,
          .uses_last_block_ticket = reduce.finish == ReducePolicy::Finish::last_block,
          .dependent_launch = true,
          .cluster_blocks = reduce.cluster_blocks};
}

std::size_t ReductionFamily::workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const {
  const auto reduce = candidate.policy.as<ReducePolicy>();
  if (!uses_workspace(reduce)) return 0;
  Problem largest = problem_class.typical();
  largest.extents[0] = std::min(problem_class.sizes()[0].last, kMostBytes / element_bytes(largest));
  const std::int64_t partials =
      is_canonical(largest) ? spans_of(reduce, tiles_of(largest, reduce)).count : candidate.geometry.max_blocks;
  return kWorkspaceHeaderBytes + static_cast<std::size_t>(partials) * partial_bytes(largest);
}

void ReductionFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                             void* workspace, LaunchList& launches) const {
  const auto reduce = candidate.policy.as<ReducePolicy>();
  const auto grid = static_cast<unsigned>(grid_of(problem, candidate));
  const auto arrays = static_cast<std::size_t>(inputs(problem));
  ReduceArguments arguments{.in = {},
                            .n = static_cast<std::uint64_t>(problem.extents[0]),
                            .workspace = workspace,
                            .out = {},
                            .partials = grid};
  if (is_canonical(problem)) {
    const Spans spans = spans_of(reduce, tiles_of(problem, reduce));
    arguments.partials = static_cast<unsigned>(spans.count);
    arguments.run_levels = static_cast<unsigned>(spans.levels);
  }
  std::copy_n(buffers.begin(), arrays, arguments.in);
  std::copy(buffers.begin() + static_cast<std::ptrdiff_t>(arrays), buffers.end(), arguments.out);

  Launch& main = add_launch(launches, grid, reduce.block_threads, arguments);
  main.cluster_blocks = static_cast<unsigned>(reduce.cluster_blocks);
  if (reduce.finish == ReducePolicy::Finish::second_kernel)
    add_launch(launches, 1, reduce.block_threads, arguments).entry = 1;
}

}  // namespace hone
