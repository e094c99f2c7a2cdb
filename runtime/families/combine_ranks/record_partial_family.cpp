#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "kernel_templates/combine_arguments.h"
#include "runtime/families/built_in_family.h"
#include "runtime/families/combine_ranks/partial_layout.h"
#include "runtime/families/counts.h"

namespace hone {
namespace {

struct RecordPolicy {
  std::int32_t block_threads = 128;

  static const ParameterSpace& space() {
    static const auto& space = never_destroyed(
        space_of<RecordPolicy>(PolicyField{&RecordPolicy::block_threads, ordinal("block_threads", {128, 32, 512})}));
    return space;
  }
};

constexpr std::array<std::string_view, 2> kOperations{"count", "locate"};
constexpr std::uint8_t kLocate = 1;

bool locates(const Problem& problem) { return problem.operation == kLocate; }

/// No extent: the same kernel serves all numbers of columns.
std::int64_t columns_of(const Problem& problem) { return static_cast<std::int64_t>(problem.scalars[0].value_or(1)); }

std::int64_t pitch_of(const Problem& problem) {
  return problem.pitches[0] == 0 ? columns_of(problem) : problem.pitches[0];
}

/// The columns that measuring and verifying locate elements in: an array of gigabytes would show nothing else.
std::int64_t located_columns(const Problem& problem) {
  return std::min<std::int64_t>(columns_of(problem), 65536);
}

/// Indices of all elements, and −1 for none.
class RecordVerifier final : public Verifier {
 public:
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override {
    if (buffer != 1) return Verifier::input_pattern(problem, buffer, kind);
    std::vector<std::byte> bytes(static_cast<std::size_t>(problem.extents[0]) * sizeof(std::int64_t));
    for (std::int64_t row = 0; row < problem.extents[0]; ++row) {
      const std::int64_t index = row * 7919 % (located_columns(problem) + 1) - 1;
      std::memcpy(bytes.data() + row * 8, &index, sizeof(index));
    }
    return bytes;
  }

  std::string verify(const Problem& problem, const Candidate&, ArrayBytes patterns, ArrayBytes outputs) const override {
    std::int64_t count = 0;
    std::memcpy(&count, outputs.back().data(), sizeof(count));
    if (count != columns_of(problem)) return fmt::format("the count is {}, not {}", count, columns_of(problem));
    if (!locates(problem) || count == 0) return "";
    if (outputs[1] != patterns[1]) return "indices are not those that were found";
    const std::size_t bytes = info(problem.dtype).size_bytes, period = patterns[0].size() / bytes;
    for (std::int64_t row = 0; row < problem.extents[0]; ++row) {
      std::int64_t index = 0;
      std::memcpy(&index, patterns[1].data() + row * 8, sizeof(index));
      const auto at = static_cast<std::size_t>(row * pitch_of(problem) + index) % period;
      if (index >= 0 && std::memcmp(outputs[0].data() + static_cast<std::size_t>(row) * bytes,
                                    patterns[0].data() + at * bytes, bytes) != 0)
        return fmt::format("row {}: the value is not that of element {}", row, index);
    }
    return "";
  }
};

class RecordPartialFamily final : public BuiltInFamily {
 public:
  RecordPartialFamily()
      : BuiltInFamily({.name = "record_partial",
                       .space = RecordPolicy::space(),
                       .extent_names = {"rows"},
                       .scalar_names = {"columns"},
                       .operations = kOperations,
                       .kernels = {"record_partial.cuh"}}) {}

  std::string fault_of(const Problem& problem) const override {
    const Rows rows{.rows = problem.extents[0], .length = columns_of(problem), .pitch = pitch_of(problem)};
    return first_fault({choice_fault(problem, problem.accumulator.value_or(problem.dtype)),
                        rows_fault("input", rows, element_bytes(problem))});
  }

  Reason is_valid(const ProblemClass&, const Policy& policy, const DeviceFacts& facts) const override {
    return check_blocks(facts, policy.as<RecordPolicy>().block_threads);
  }

  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override {
    const Problem& problem = problem_class.typical();
    Unit unit;
    unit.source = fmt::format(
        "#include \"record_partial.cuh\"\n\n"
        "using Kernel = hone::RecordPartial<{}, {}>;\n"
        "static_assert(sizeof(hone::RecordArguments) == {}, \"host and device disagree\");\n",
        info(problem.dtype).cuda_name, locates(problem), sizeof(RecordArguments));
    unit.entries = {kernel_entry("Kernel::run", policy.as<RecordPolicy>().block_threads)};
    return unit;
  }

  WorkShape shape(const Problem& problem, const Policy& policy) const override {
    const std::int32_t threads = policy.as<RecordPolicy>().block_threads;
    return {.block_threads = threads,
            .tiles = locates(problem) ? at_least_one(divide_up(problem.extents[0], threads)) : 1,
            .bytes_in_flight_per_block = threads * std::int64_t{8},
            .dependent_launch = true,
            .independent_blocks = true};
  }

  /// Counts one element of each row of the input.
  std::int64_t bytes_moved(const Problem& problem) const override {
    return 8 + (locates(problem) ? problem.extents[0] * (16 + 2 * element_bytes(problem)) : 0);
  }

  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
              LaunchList& launches) const override {
    RecordArguments arguments{};
    arguments.count = static_cast<long long*>(buffers.back());
    arguments.rows = static_cast<std::uint64_t>(problem.extents[0]);
    arguments.columns = static_cast<std::uint64_t>(columns_of(problem));
    arguments.pitch = pitch_of(problem);
    if (locates(problem)) {
      arguments.in = buffers[0];
      arguments.found = static_cast<const long long*>(buffers[1]);
      arguments.values = buffers[2];
      arguments.indices = static_cast<long long*>(buffers[3]);
    }
    const WorkShape work = shape(problem, candidate.policy);
    add_launch(launches, std::min(candidate.geometry.max_blocks, work.tiles), work.block_threads, arguments);
  }

  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    if (!locates(problem)) return {output("count", DType::i64, 1)};
    const Rows rows{.rows = problem.extents[0], .length = located_columns(problem), .pitch = pitch_of(problem)};
    return {input("in", problem.dtype, rows.elements(), element_bytes(problem)),
            input("found", DType::i64, problem.extents[0], 8), output("values", problem.dtype, problem.extents[0]),
            output("indices", DType::i64, problem.extents[0]), output("count", DType::i64, 1)};
  }

  const Verifier& verifier() const override {
    static const auto& verifier = never_destroyed<RecordVerifier>();
    return verifier;
  }
};

}  // namespace

const KernelFamily& record_partial_family() { return the_family<RecordPartialFamily>(); }

Problem record_partial_problem(const ReduceSpec& spec, const RowsShape& shape) {
  const bool locates = PartialLayout::of(spec, 1).has_index;
  return {.family = &record_partial_family(),
          .operation = locates ? kLocate : std::uint8_t{0},
          .dtype = locates ? spec.dtype : DType::i64,
          .alignment = kMaxAlignment,
          .extents = {locates ? shape.rows : 1, 1, 1},
          .pitches = {locates && shape.pitch != shape.columns ? shape.pitch : 0, 0},
          .scalars = {static_cast<double>(shape.columns)}};
}

}  // namespace hone
