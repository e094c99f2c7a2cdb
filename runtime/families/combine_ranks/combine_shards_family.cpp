#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernel_templates/shard_arguments.h"
#include "runtime/families/built_in_family.h"
#include "runtime/families/combine_ranks/canonical_shard.h"
#include "runtime/families/combine_ranks/partial_layout.h"
#include "runtime/families/combine_ranks/shard_layout.h"
#include "runtime/families/counts.h"
#include "runtime/families/reduce/reduction_family.h"
#include "runtime/families/reduce/reduce_reference.h"

namespace hone {
namespace {

struct CombinePolicy {
  std::int32_t block_threads = 128;

  static const ParameterSpace& space() {
    static const auto& space = never_destroyed(
        space_of<CombinePolicy>(PolicyField{&CombinePolicy::block_threads, ordinal("block_threads", {128, 32, 256})}));
    return space;
  }
};

constexpr std::int64_t kWarpThreads = 32;

/// Sequences that are spread over ranks: empty, within a chunk, and of a few chunks.
class CombineVerifier final : public Verifier {
 public:
  std::span<const std::string_view> input_kinds(const Problem& problem) const override {
    return reduce_reference::input_kinds(shard_spec_of(problem));
  }

  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override {
    const std::vector<std::int64_t> counts = counts_of(problem);
    if (buffer == 1) {
      std::vector<std::byte> bytes(counts.size() * kCountBytes);
      for (std::size_t rank = 0; rank < counts.size(); ++rank)
        std::memcpy(bytes.data() + rank * kCountBytes, &counts[rank], sizeof(counts[rank]));
      return bytes;
    }
    const ShardLayout layout = ShardLayout::of(problem);
    std::vector<std::byte> blocks(static_cast<std::size_t>(problem.extents[0] * layout.block_bytes));
    const ReduceSpec spec = shard_spec_of(problem);
    const Elements elements(problem, kind);
    // Rows have the same elements, one later each.
    for (std::int64_t row = 0; row < problem.extents[1]; ++row) {
      std::int64_t offset = 0;
      for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        const canonical::Shard shard{spec, layout, elements.from(0, row + offset), elements.from(1, row + offset),
                                     offset, counts[rank]};
        shard.write(std::span(blocks).subspan(rank * static_cast<std::size_t>(layout.block_bytes),
                                              static_cast<std::size_t>(layout.block_bytes)), row);
        offset += counts[rank];
      }
    }
    return blocks;
  }

  std::vector<Problem> verified_problems(const Problem& problem) const override {
    constexpr std::int64_t kMostRows = 3;
    Problem verified = problem;
    verified.extents[1] = std::min(kMostRows, problem.extents[1]);
    verified.scalars = {};
    return {verified};
  }

  std::string verify(const Problem& problem, const Candidate&, ArrayBytes patterns, ArrayBytes outputs) const override {
    const ReduceSpec spec = shard_spec_of(problem);
    std::int64_t n = 0;
    for (const std::int64_t count : counts_of(problem)) n += count;
    const std::size_t bytes = info(spec.result_dtype()).size_bytes * static_cast<std::size_t>(info(spec.op).outputs);
    // The kind is that whose blocks these are.
    for (const std::string_view kind : input_kinds(problem)) {
      if (input_pattern(problem, 0, kind) != patterns[0]) continue;
      const Elements elements(problem, kind);
      for (std::int64_t row = 0; row < problem.extents[1]; ++row) {
        std::array<std::byte, 16> expected{};
        canonical::reduce(spec, elements.from(0, row), elements.from(1, row), n, expected.data());
        if (std::memcmp(expected.data(), outputs[0].data() + static_cast<std::size_t>(row) * bytes, bytes) != 0)
          return fmt::format("row {}, {}: not the reproducible result of {} elements on {} ranks", row, kind, n,
                             problem.extents[0]);
      }
      return "";
    }
    return "the blocks are of no kind of input";
  }

 private:
  /// Patterns of all elements, or of both factors.
  struct Elements {
    std::vector<std::byte> patterns[2];
    std::int64_t period[2];

    Elements(const Problem& problem, std::string_view kind) {
      const ReduceSpec spec = shard_spec_of(problem);
      for (int i = 0; i < 2; ++i) {
        patterns[i] = reduce_reference::input_pattern(spec, i % info(spec.op).inputs, 1 << 20, kind);
        period[i] = static_cast<std::int64_t>(patterns[i].size() / info(spec.dtype).size_bytes);
      }
    }
    canonical::Sequence from(int i, std::int64_t first) const {
      return {.bytes = patterns[i].data(), .period = period[i], .first = first};
    }
  };

  static std::vector<std::int64_t> counts_of(const Problem& problem) {
    const std::int64_t chunk = ShardLayout::of(problem).chunk;
    std::mt19937_64 random(static_cast<std::uint64_t>(problem.extents[0]));
    std::vector<std::int64_t> counts(static_cast<std::size_t>(problem.extents[0]));
    for (std::int64_t& count : counts) {
      const auto any = static_cast<std::int64_t>(random() % 1000000);
      switch (any % 4) {
        case 0: count = any % 8 == 0 ? 0 : chunk; break;
        case 1: count = any / 4 % (chunk / 2); break;
        case 2: count = any / 4 % (4 * chunk); break;
        default: count = any / 4 % 10 * chunk;
      }
    }
    return counts;
  }
};

class CombineShardsFamily final : public BuiltInFamily {
 public:
  CombineShardsFamily()
      : BuiltInFamily({.name = "combine_shards",
                       .space = CombinePolicy::space(),
                       .extent_names = {"ranks", "rows"},
                       .scalar_names = shard_scalar_names(),
                       .operations = reduce_shard_family().operations(),
                       .kernels = with_operations({"combine_shards.cuh"})}) {}

  std::string fault_of(const Problem& problem) const override {
    const auto [ranks, rows, unused] = problem.extents;
    const ReduceSpec spec = shard_spec_of(problem);
    if (std::string fault = first_fault({dtypes_fault(spec), ranks_fault(ranks)}); !fault.empty()) return fault;
    if (!spec.is_reproducible())
      return "results are those of the canonical tree; pass Numerics::reproducible";
    if (!product_within_memory({ranks, std::max<std::int64_t>(rows, 1), 1 << 16}))
      return fmt::format("no memory holds the blocks of {} rows and {} ranks", rows, ranks);
    return "";
  }

  bool offers_reproducible(const Problem&) const override { return true; }

  Reason is_valid(const ProblemClass&, const Policy& policy, const DeviceFacts& facts) const override {
    return check_blocks(facts, policy.as<CombinePolicy>().block_threads);
  }

  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override {
    const Problem& problem = problem_class.typical();
    const ReduceSpec spec = shard_spec_of(problem);
    const OperationSource op = operation_source(spec, true);
    const ShardLayout layout = ShardLayout::of(problem);
    const std::int32_t threads = policy.as<CombinePolicy>().block_threads;
    const std::string source = op.includes + fmt::format(
        "#include \"combine_shards.cuh\"\n\n"
        "using Op = hone::Canonical<{}>;\n"
        "using Kernel = hone::CombineShards<Op, {}, {}, {}, {}>;\n"
        "static_assert(sizeof(Op::State) == {} && sizeof(hone::CombineShardsArguments) == {} &&\n"
        "              Kernel::kElements == {}, \"host and device disagree\");\n",
        op.type, layout.edges_are_leaves, info(spec.result_dtype()).cuda_name, info(spec.op).outputs, threads,
        layout.state_bytes, sizeof(CombineShardsArguments), layout.chunk);
    return unit_of(source, {kernel_entry("Kernel::run", threads, MinBlocks::one)});
  }

  WorkShape shape(const Problem& problem, const Policy& policy) const override {
    const std::int32_t threads = policy.as<CombinePolicy>().block_threads;
    return {.block_threads = threads,
            .tiles = at_least_one(divide_up(problem.extents[1], threads / kWarpThreads)),
            .bytes_in_flight_per_block = threads * std::int64_t{16},
            .dependent_launch = true,
            .independent_blocks = true};
  }

  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
              LaunchList& launches) const override {
    const ShardLayout layout = ShardLayout::of(problem);
    const WorkShape work = shape(problem, candidate.policy);
    add_launch(launches, std::min(candidate.geometry.max_blocks, work.tiles), work.block_threads,
               CombineShardsArguments{.blocks = buffers[0],
                                      .counts = static_cast<const long long*>(buffers[1]),
                                      .out = buffers[2],
                                      .block_bytes = static_cast<std::uint64_t>(layout.block_bytes),
                                      .edges_at = static_cast<std::uint64_t>(layout.edges_at),
                                      .rows = static_cast<std::uint64_t>(problem.extents[1]),
                                      .ranks = static_cast<unsigned>(problem.extents[0]),
                                      .levels = static_cast<unsigned>(layout.levels)});
  }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    const ReduceSpec spec = shard_spec_of(problem);
    return {input("blocks", DType::u8, problem.extents[0] * ShardLayout::of(problem).block_bytes, kMaxAlignment),
            input("counts", DType::i64, problem.extents[0] * kCountBytes / 8, kMaxAlignment),
            output("out", spec.result_dtype(), problem.extents[1] * info(spec.op).outputs)};
  }

  const Verifier& verifier() const override {
    static const auto& verifier = never_destroyed<CombineVerifier>();
    return verifier;
  }
};

}  // namespace

const KernelFamily& combine_shards_family() { return the_family<CombineShardsFamily>(); }

}  // namespace hone
