#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernel_templates/shard_arguments.h"
#include "runtime/families/built_in_family.h"
#include "runtime/families/combine_ranks/canonical_shard.h"
#include "runtime/families/combine_ranks/shard_layout.h"
#include "runtime/families/counts.h"
#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/reduce/reduction_family.h"
#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/softmax/canonical_softmax.h"

namespace hone {
namespace {

struct ShardPolicy {
  std::int32_t block_threads = 256;
  std::int32_t unroll = 4;  ///< chunks that a warp has in flight

  static const ParameterSpace& space() {
    using P = ShardPolicy;
    static const auto& space =
        never_destroyed(space_of<P>(PolicyField{&P::block_threads, ordinal("block_threads", {256, 128, 512})},
                                    PolicyField{&P::unroll, ordinal("unroll", {4, 2, 1})}));
    return space;
  }
};

constexpr auto kOperations = [] {
  std::array<std::string_view, kReduceOps.size() + 1> names;
  for (std::size_t i = 0; i < kReduceOps.size(); ++i) names[i] = kReduceOps[i].name;
  names.back() = "softmax_weights";
  return names;
}();

constexpr std::int64_t kMostPartials = 4096;          ///< of a row, which one block combines
constexpr std::int64_t kMostPartialsOfCall = 16384;  ///< unless two of each row are more

bool has_origins(const Problem& problem) { return problem.operation == kSoftmaxWeights; }
int arrays_of(const Problem& problem) { return info(shard_spec_of(problem).op).inputs; }
std::int64_t pitch_of(const Problem& problem) { return hone::pitch_of(problem, 0, problem.extents[1]); }
std::int64_t rank_of(const Problem& problem) {
  return static_cast<std::int64_t>(problem.scalars[kRankScalar].value_or(0));
}

/// Ends of packs are exchanged by words: packs of several elements have at least one.
std::int64_t vector_bytes(const Problem& problem) {
  constexpr std::int64_t kWordBytes = 4;
  return problem.alignment < kWordBytes ? element_bytes(problem)
                                        : std::max<std::int64_t>(problem.alignment, element_bytes(problem));
}

/// How the chunks of a row are divided, wherever the first of them begins.
struct Runs {
  int levels = 0;          ///< a run has 2^levels batches
  std::int64_t count = 1;  ///< runs that a row touches
  bool may_be_whole = false;

  static Runs of(const Problem& problem, const ShardPolicy& policy) {
    const std::int64_t chunks = problem.extents[1] * element_bytes(problem) / kChunkBytes;
    if (chunks == 0) return {};
    const std::int64_t rows = at_least_one(problem.extents[0]);
    const std::int64_t most = std::clamp<std::int64_t>(kMostPartialsOfCall / rows, 2, kMostPartials);
    const std::int64_t batches = divide_up(chunks, policy.unroll);
    const Spans spans = Spans::of(batches, most);
    const std::int64_t run = std::int64_t{policy.unroll} << spans.levels;
    return {.levels = spans.levels, .count = (chunks - 1) / run + 2, .may_be_whole = chunks >= run};
  }
};

/// Origins of neighbouring rows, beyond all elements, which are in [−1, 1).
constexpr std::array<float, 3> kOrigins{1.5f, 2.5f, 1.25f};
float origin_of(const Problem& problem, std::int64_t row) {
  const float origin = kOrigins[static_cast<std::size_t>(row) % kOrigins.size()];
  return problem.scalars[kFactorScalar].value_or(2) < 0 ? -origin : origin;
}

/// The ranks ahead have so many elements that the shard begins within a chunk.
std::int64_t count_of(const Problem& problem, std::int64_t rank) {
  return rank == rank_of(problem) ? problem.extents[1] : 777 + 13 * rank;
}

class ShardVerifier final : public Verifier {
 public:
  std::span<const std::string_view> input_kinds(const Problem& problem) const override {
    if (has_origins(problem)) return Verifier::input_kinds(problem);
    return reduce_reference::input_kinds(shard_spec_of(problem));
  }

  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override {
    const std::int64_t elements = problem.family->buffers(problem)[static_cast<std::size_t>(buffer)].elements;
    if (buffer == arrays_of(problem)) return counts(problem);
    if (has_origins(problem) && buffer > 0) return origins(problem);
    if (has_origins(problem)) return Verifier::input_pattern(problem, buffer, kind);
    return reduce_reference::input_pattern(shard_spec_of(problem), buffer, elements, kind);
  }

  /// As the first rank, and as one whose shard begins within a chunk. Rows are computed by themselves.
  std::vector<Problem> verified_problems(const Problem& problem) const override {
    constexpr std::int64_t kMostRows = 6;
    Problem first = problem;
    first.extents[0] = std::min(kMostRows, problem.extents[0]);
    first.scalars[kRankScalar] = 0;
    Problem second = first;
    second.pitches[0] = pitch_of(problem);
    second.extents[1] = std::max<std::int64_t>(0, problem.extents[1] - 1);
    second.scalars[kRankScalar] = 2;
    for (Problem* each : {&first, &second}) each->scalars[kLevelsScalar] = each->scalars[kEdgesScalar] = std::nullopt;
    return {first, second};
  }

  std::string verify(const Problem& problem, const Candidate&, ArrayBytes patterns, ArrayBytes outputs) const override {
    const ReduceSpec spec = shard_spec_of(problem);
    const ShardLayout layout = ShardLayout::of(problem);
    std::int64_t offset = 0;
    for (std::int64_t rank = 0; rank < rank_of(problem); ++rank) offset += count_of(problem, rank);
    const auto bytes = static_cast<std::int64_t>(info(spec.dtype).size_bytes);
    for (std::int64_t row = 0; row < problem.extents[0]; ++row) {
      const std::vector<std::byte> weights = weights_of(problem, row, patterns);
      const auto sequence = [&](const std::vector<std::byte>& pattern, std::int64_t element) {
        const std::int64_t period = at_least_one(static_cast<std::int64_t>(pattern.size()) / element);
        return canonical::Sequence{
            .bytes = pattern.data(), .period = period, .first = row * pitch_of(problem) % period};
      };
      ReduceSpec of_leaves = spec;
      canonical::Sequence a = sequence(patterns[0], bytes), b = a;
      if (spec.op == ReduceOp::dot) b = sequence(patterns[1], bytes);
      if (has_origins(problem)) {
        of_leaves.dtype = spec.accumulator_dtype();
        a = b = sequence(weights, layout.state_bytes);
      }
      const canonical::Shard shard{of_leaves, layout, a, b, offset, problem.extents[1]};
      if (std::string wrong = shard.compare(outputs[0], row); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  static std::vector<std::byte> counts(const Problem& problem) {
    std::vector<std::byte> bytes(static_cast<std::size_t>((rank_of(problem) + 1) * kCountBytes));
    for (std::int64_t rank = 0; rank <= rank_of(problem); ++rank) {
      const std::int64_t count = count_of(problem, rank);
      std::memcpy(bytes.data() + rank * kCountBytes, &count, sizeof(count));
    }
    return bytes;
  }

  static std::vector<std::byte> origins(const Problem& problem) {
    return with_element_type(problem.dtype, [&]<class T>(T) {
      std::vector<std::byte> bytes(kOrigins.size() * sizeof(T));
      for (std::size_t row = 0; row < kOrigins.size(); ++row) {
        const auto origin = static_cast<T>(origin_of(problem, static_cast<std::int64_t>(row)));
        std::memcpy(bytes.data() + row * sizeof(T), &origin, sizeof(T));
      }
      return bytes;
    });
  }

  static std::vector<std::byte> weights_of(const Problem& problem, std::int64_t row,
                                           ArrayBytes patterns) {
    if (!has_origins(problem)) return {};
    const ReduceSpec spec = shard_spec_of(problem);
    return canonical::softmax_weights(
        {.dtype = spec.dtype, .result = spec.result_dtype(), .accumulator = spec.accumulator_dtype()},
        problem.scalars[kFactorScalar].value_or(2), static_cast<double>(origin_of(problem, row)), patterns[0]);
  }
};

class ReduceShardFamily final : public BuiltInFamily {
 public:
  ReduceShardFamily()
      : BuiltInFamily({.name = "reduce_shard",
                       .space = ShardPolicy::space(),
                       .extent_names = {"rows", "columns"},
                       .scalar_names = shard_scalar_names(),
                       .operations = kOperations,
                       .kernels = with_operations({"canonical_shard.cuh"})}) {}

  std::string fault_of(const Problem& problem) const override {
    const ReduceSpec spec = shard_spec_of(problem);
    if (std::string fault = dtypes_fault(spec); !fault.empty()) return fault;
    if (!spec.is_reproducible())
      return "nodes are those of the canonical tree; pass Numerics::reproducible and an operation whose result depends "
             "on an order";
    if (arrays_of(problem) == 2 && problem.extents[0] != 1) return "a product of two arrays has no rows to reduce";
    const Rows rows{.rows = problem.extents[0], .length = problem.extents[1], .pitch = pitch_of(problem)};
    return first_fault({rows_fault("input", rows, element_bytes(problem)), size_fault("blocks", rows.rows, 1 << 16)});
  }

  bool offers_reproducible(const Problem&) const override { return true; }

  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override {
    const auto shard = policy.as<ShardPolicy>();
    const Problem& problem = problem_class.typical();
    return first_reason({check_blocks(facts, shard.block_threads),
                         reason_if(has_too_many_values(problem, shard.unroll, vector_bytes(problem)),
                                   "a warp folds at most 32 values of a lane at once")});
  }

  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override {
    const Problem& problem = problem_class.typical();
    const auto shard = policy.as<ShardPolicy>();
    const ReduceSpec spec = shard_spec_of(problem);
    const OperationSource op = operation_source(spec, true);
    std::string source = op.includes;
    const std::string_view in = info(spec.dtype).cuda_name;
    const std::string type =
        has_origins(problem)
            ? fmt::format("hone::SoftmaxWeight<hone::CanonicalSoftmaxTypes<{}, {}, {}, {}, false, 1>>", in,
                          info(spec.result_dtype()).cuda_name, info(spec.accumulator_dtype()).cuda_name,
                          index_type(true))
            : fmt::format("hone::Canonical<{}>", op.type);
    const ShardLayout layout = ShardLayout::of(problem);
    source += fmt::format(
        "#include \"canonical_shard.cuh\"\n\n"
        "using Op = {};\n"
        "using Kernel = hone::CanonicalShard<Op, hone::{}, {}, {}, {}, {}>;\n"
        "static_assert(sizeof(Op::State) == {} && sizeof(hone::ShardArguments) == {} && Kernel::kElements == {} &&\n"
        "              hone::kCountStride * sizeof(long long) == {}, \"host and device disagree\");\n",
        type, arrays_of(problem) == 2 ? "TwoArrays" : "OneArray", layout.edges_are_leaves, shard.block_threads,
        vector_bytes(problem), shard.unroll, layout.state_bytes, sizeof(ShardArguments), layout.chunk, kCountBytes);
    return unit_of(source, {kernel_entry("Kernel::publish", shard.block_threads, MinBlocks::one),
                            kernel_entry("Kernel::finish", shard.block_threads, MinBlocks::one)});
  }

  WorkShape shape(const Problem& problem, const Policy& policy) const override {
    const auto shard = policy.as<ShardPolicy>();
    const Runs runs = Runs::of(problem, shard);
    const std::int64_t warps = shard.block_threads / 32;
    return {.block_threads = shard.block_threads,
            .tiles = at_least_one(divide_up(problem.extents[0] * runs.count, warps)),
            .bytes_in_flight_per_block = warps * shard.unroll * kChunkBytes * arrays_of(problem),
            .launches = runs.may_be_whole ? 2 : 1,
            .dependent_launch = true,
            .independent_blocks = true};
  }

  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override {
    Problem largest = problem_class.typical();
    std::int64_t partials = 0;
    // Fewer rows may have more partials each.
    for (const std::int64_t rows : {problem_class.sizes()[0].first, problem_class.sizes()[0].last}) {
      largest.extents = {rows, std::min(problem_class.sizes()[1].last, kMostBytes / element_bytes(largest)), 1};
      const Runs runs = Runs::of(largest, candidate.policy.as<ShardPolicy>());
      if (runs.may_be_whole) partials = std::max(partials, problem_class.sizes()[0].last * runs.count);
    }
    if (partials == 0) return 0;
    return kWorkspaceHeaderBytes + static_cast<std::size_t>(partials * ShardLayout::of(largest).state_bytes);
  }

  std::int64_t bytes_moved(const Problem& problem) const override {
    return problem.extents[0] * problem.extents[1] * element_bytes(problem) * arrays_of(problem);
  }

  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override {
    const auto shard = candidate.policy.as<ShardPolicy>();
    const ShardLayout layout = ShardLayout::of(problem);
    const Runs runs = Runs::of(problem, shard);
    const int arrays = arrays_of(problem);
    ShardArguments arguments{};
    std::copy_n(buffers.begin(), arrays, arguments.in);
    arguments.counts = static_cast<const long long*>(buffers[static_cast<std::size_t>(arrays)]);
    if (has_origins(problem)) arguments.origins = buffers[2];
    arguments.block = buffers.back();
    arguments.workspace = workspace;
    arguments.rows = static_cast<std::uint64_t>(problem.extents[0]);
    arguments.columns = static_cast<std::uint64_t>(problem.extents[1]);
    arguments.pitch = static_cast<std::uint64_t>(pitch_of(problem));
    arguments.edges_at = static_cast<std::uint64_t>(layout.edges_at);
    arguments.runs = static_cast<std::uint64_t>(runs.count);
    arguments.factor = problem.scalars[kFactorScalar].value_or(2);
    arguments.rank = static_cast<unsigned>(rank_of(problem));
    arguments.levels = static_cast<unsigned>(layout.levels);
    arguments.run_levels = static_cast<unsigned>(runs.levels);
    const WorkShape work = shape(problem, candidate.policy);
    add_launch(launches, std::min(candidate.geometry.max_blocks, work.tiles), work.block_threads, arguments);
    if (runs.may_be_whole)
      add_launch(launches, std::min(candidate.geometry.max_blocks, problem.extents[0]), work.block_threads, arguments)
          .entry = 1;
  }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    const Rows rows{.rows = problem.extents[0], .length = problem.extents[1], .pitch = pitch_of(problem)};
    std::vector<BufferSpec> buffers;
    // One array may begin anywhere; of two, the distance is aligned.
    for (int i = 0; i < arrays_of(problem); ++i)
      buffers.push_back(input(i == 0 ? "in" : "b", problem.dtype, rows.elements(), element_bytes(problem)));
    buffers.push_back(input("counts", DType::i64, (rank_of(problem) + 1) * kCountBytes / 8, 16));
    if (has_origins(problem))
      buffers.push_back(input("origins", problem.dtype, problem.extents[0], element_bytes(problem)));
    buffers.push_back(output("block", DType::u8, ShardLayout::of(problem).block_bytes, 16));
    return buffers;
  }

  const Verifier& verifier() const override {
    static const auto& verifier = never_destroyed<ShardVerifier>();
    return verifier;
  }
};

}  // namespace

const KernelFamily& reduce_shard_family() { return the_family<ReduceShardFamily>(); }

}  // namespace hone
