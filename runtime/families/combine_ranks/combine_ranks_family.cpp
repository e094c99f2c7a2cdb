#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "kernel_templates/combine_arguments.h"
#include "runtime/families/built_in_family.h"
#include "runtime/families/combine_ranks/partial_layout.h"
#include "runtime/families/combine_ranks/partials_verifier.h"
#include "runtime/families/counts.h"

namespace hone {
namespace {

/// One number: results do not depend on it, and partials are few.
struct CombinePolicy {
  std::int32_t block_threads = 128;

  static const ParameterSpace& space() {
    static const auto& space = never_destroyed(
        space_of<CombinePolicy>(PolicyField{&CombinePolicy::block_threads, ordinal("block_threads", {128, 32, 512})}));
    return space;
  }
};

constexpr int kWarpThreads = 32;

/// Lanes of an output: enough for every number of ranks of the class, as combine_ranks.cuh demands.
int lanes_of(const ProblemClass& problem_class) {
  const std::int64_t most = std::min<std::int64_t>(kWarpThreads, problem_class.sizes()[0].last);
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(at_least_one(most))));
}

/// The reduction whose partials are combined.
Problem of_one_rank(Problem problem) {
  problem.family = &reduce_family();
  problem.extents = {1, 1, 1};
  return problem;
}

/// The functor of rank_partials.cuh.
std::string combine_of(const ReduceSpec& spec, DType value) {
  return fmt::format(fmt::runtime(divided(spec.op).combine), info(value).cuda_name, spec.nan == NanPolicy::ignore);
}

/// Levels of the tree of a lane's ranks, likewise.
int levels_of(const ProblemClass& problem_class) {
  const std::int64_t most = std::min(kMostRanks, problem_class.sizes()[0].last);
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(divide_up(most, lanes_of(problem_class)) - 1))) + 1;
}

constexpr auto kOperations = [] {
  std::array<std::string_view, kReduceOps.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kReduceOps[i].name;
  return names;
}();

class CombineRanksFamily final : public BuiltInFamily {
 public:
  CombineRanksFamily()
      : BuiltInFamily({.name = "combine_ranks",
                       .space = CombinePolicy::space(),
                       .extent_names = {"ranks", "rows"},
                       .operations = kOperations,
                       .kernels = {"combine_ranks.cuh"}}) {}

  std::string fault_of(const Problem& problem) const override {
    if (std::string refusal = reduce_family().refuse(of_one_rank(problem)); !refusal.empty()) return refusal;
    const auto [ranks, rows, unused] = problem.extents;
    if (std::string fault = ranks_fault(ranks); !fault.empty()) return fault;
    constexpr std::int64_t kMostBytesOfRow = 32;
    if (!product_within_memory({ranks, std::max<std::int64_t>(rows, 1), kMostBytesOfRow}))
      return fmt::format("no memory holds the partials of {} rows and {} ranks", rows, ranks);
    return "";
  }

  Reason is_valid(const ProblemClass&, const Policy& policy, const DeviceFacts& facts) const override {
    return check_blocks(facts, policy.as<CombinePolicy>().block_threads);
  }

  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override {
    const ReduceSpec spec = reduce_spec_of(problem_class.typical());
    const PartialLayout layout = PartialLayout::of(spec, 1);
    const std::int32_t threads = policy.as<CombinePolicy>().block_threads;
    Unit unit;
    unit.source = fmt::format(
        "#include \"combine_ranks.cuh\"\n\n"
        "using Op = hone::combined::{};\n"
        "using Kernel = hone::CombineRanks<Op, {}, {}, {}, {}, {}>;\n"
        "static_assert(sizeof(hone::CombineArguments) == {}, \"host and device disagree\");\n",
        combine_of(spec, layout.value),
        info(spec.result_dtype()).cuda_name, info(spec.op).outputs, lanes_of(problem_class), levels_of(problem_class),
        threads, sizeof(CombineArguments));
    unit.entries = {kernel_entry("Kernel::run", threads)};
    return unit;
  }

  WorkShape shape(const Problem& problem, const Policy& policy) const override {
    const std::int32_t threads = policy.as<CombinePolicy>().block_threads;
    const std::int64_t rows_per_block = threads / lanes_of(problem);
    return {.block_threads = threads,
            .tiles = at_least_one(divide_up(problem.extents[1], rows_per_block)),
            .bytes_in_flight_per_block = threads * std::int64_t{16},
            .dependent_launch = true,
            .independent_blocks = true};
  }

  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
              LaunchList& launches) const override {
    const PartialLayout layout = PartialLayout::of(reduce_spec_of(problem), problem.extents[1]);
    const WorkShape work = shape(problem, candidate.policy);
    add_launch(launches, std::min(candidate.geometry.max_blocks, work.tiles), work.block_threads,
               CombineArguments{.partials = buffers[0],
                                .out = buffers[1],
                                .block_bytes = static_cast<std::uint64_t>(layout.block_bytes),
                                .index_at = static_cast<std::uint64_t>(layout.index_at),
                                .count_at = static_cast<std::uint64_t>(layout.count_at),
                                .rows = static_cast<std::uint64_t>(problem.extents[1]),
                                .ranks = static_cast<unsigned>(problem.extents[0])});
  }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    const ReduceSpec spec = reduce_spec_of(problem);
    const PartialLayout layout = PartialLayout::of(spec, problem.extents[1]);
    return {input("partials", DType::u8, problem.extents[0] * layout.block_bytes, kMaxAlignment),
            output("out", spec.result_dtype(), problem.extents[1] * info(spec.op).outputs)};
  }

  const Verifier& verifier() const override {
    static const auto& verifier = never_destroyed<PartialsVerifier>();
    return verifier;
  }
};

}  // namespace

const KernelFamily& combine_ranks_family() { return the_family<CombineRanksFamily>(); }

Problem combine_ranks_problem(const ReduceSpec& spec, std::int64_t ranks, std::int64_t rows) {
  Problem problem = reduce_problem(spec, 1);
  problem.family = &combine_ranks_family();
  problem.alignment = kMaxAlignment;
  problem.extents = {ranks, rows, 1};
  return problem;
}

}  // namespace hone
