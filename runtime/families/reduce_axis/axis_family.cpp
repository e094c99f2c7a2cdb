#include "runtime/families/reduce_axis/axis_family.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/reduce_family.h"

namespace hone {
namespace {

/// g++ 12.2 drops addends when it makes vectors of a loop that counts in several rows at once: with -O3 and without
/// this, count_nonzero of columns of 4999 ones came out as 4813. clang++ 14 and g++ -O2 are right.
constexpr std::string_view kHostPragmas =
    "#if defined(HONE_HOST_DEVICE) && !defined(__clang__)\n"
    "#pragma GCC optimize (\"no-tree-loop-vectorize\")\n"
    "#endif\n";

}  // namespace

std::int64_t AxisLayout::elements() const {
  if (outer == 0 || reduced == 0 || inner == 0) return 0;
  return (outer - 1) * outer_stride + (reduced - 1) * reduced_stride + inner;
}

std::span<const std::string_view> AxisFamily::operations() const { return reduce_family().operations(); }

std::string AxisFamily::refuse(const Problem& problem) const {
  if (problem.operation >= kReduceOps.size()) return fmt::format("{} has no operation {}", name(), problem.operation);
  const ReduceSpec spec = reduce_spec_of(problem);
  const ReduceOpInfo& op = info(spec.op);
  if (op.inputs != 1) return fmt::format("{} takes one array, and {} takes two; call tuned_dot()", name(), op.name);
  if (std::string refusal = refuse_dtypes(spec); !refusal.empty()) return refusal;
  if (std::string refusal = refuse_shape(problem); !refusal.empty()) return refusal;
  const AxisLayout asked = layout(problem);
  if (op.needs_elements && asked.reduced == 0 && asked.outputs() > 0)
    return fmt::format("{} was asked for the {} of no elements, which has none", name(), op.name);
  return "";
}

std::string AxisFamily::refuse_shape(const Problem& problem) const {
  const Extents& extents = problem.extents;
  // Asked on every call: nothing is formatted unless it is wrong.
  const auto shape = [&] { return fmt::format("{} × {} × {}", extents[0], extents[1], extents[2]); };
  for (const std::int64_t extent : extents)
    if (extent < 0) return fmt::format("{} was asked for {}, but no extent can be negative", name(), shape());

  const std::int64_t pitch = problem.pitches[0];
  const std::int64_t row_length = extents[row_extent()];
  if (pitch < 0)
    return fmt::format(
        "{} was asked for a pitch of {}, but rows cannot lie behind one another; pass 0 for rows without gaps",
        name(), pitch);
  if (pitch != 0 && pitch < row_length)
    return fmt::format(
        "{} was asked for a pitch of {} elements and {} {}: rows would overlap; pass at least {}, or 0 for "
        "rows without gaps",
        name(), pitch, row_length, row_length_name(), row_length);
  const std::int64_t apart = pitch != 0 ? pitch : row_length;
  if (is_aligned(problem) && apart % (kMaxAlignment / element_bytes(problem)) != 0)
    return fmt::format(
        "{0} was asked for alignment {1}, but rows {2} elements of {3} bytes apart do not all begin there; "
        "{0}_problem() finds the alignment",
        name(), problem.alignment, apart, element_bytes(problem));
  if (problem.pitches[1] != 0)
    return fmt::format("{} was asked for an output pitch of {}, but its results lie side by side; pass 0", name(),
                       problem.pitches[1]);

  // Rows of nothing must be countable, too.
  const auto step = [&](std::size_t extent) {
    return std::max<std::int64_t>({extents[extent], extent == row_extent() ? pitch : 0, 1});
  };
  const std::optional<std::int64_t> elements = product_within_memory({step(0), step(1), step(2)});
  const std::int64_t widest = std::max<std::int64_t>(element_bytes(problem), 2 * sizeof(double));
  if (!elements || *elements > kMostBytes / widest)
    return fmt::format("{} was asked for {}{}, but no memory holds that many elements of {}", name(), shape(),
                       pitch == 0 ? "" : fmt::format(" with a pitch of {}", pitch), info(problem.dtype).name);
  return "";
}

std::int64_t AxisFamily::bytes_moved(const Problem& problem) const {
  const AxisLayout asked = layout(problem);
  const auto result_bytes = static_cast<std::int64_t>(info(reduce_spec_of(problem).result_dtype()).size_bytes);
  return asked.outputs() * (asked.reduced * element_bytes(problem) + values_of(problem) * result_bytes);
}

std::vector<BufferSpec> AxisFamily::buffers(const Problem& problem) const {
  const AxisLayout asked = layout(problem);
  return {{.name = "in", .is_input = true, .dtype = problem.dtype, .elements = asked.elements()},
          {.name = "out",
           .is_input = false,
           .dtype = reduce_spec_of(problem).result_dtype(),
           .elements = asked.outputs() * values_of(problem)}};
}

Problem axis_problem(const KernelFamily& family, const ReduceSpec& spec, const Extents& extents, std::int64_t pitch,
                     std::int64_t row_length, std::uint32_t alignment) {
  Problem problem = reduce_problem(spec, 0);
  problem.family = &family;
  problem.extents = extents;
  problem.pitches = {pitch == row_length ? 0 : pitch, 0};
  const auto row_bytes = static_cast<std::uint64_t>(pitch == 0 ? row_length : pitch) * info(spec.dtype).size_bytes;
  const bool rows_are_aligned = row_bytes % kMaxAlignment == 0;
  problem.alignment = peeled_alignment(spec.dtype, rows_are_aligned ? alignment : 1);
  return problem;
}

bool needs_wide_axis(const Problem& problem) {
  return size_ranges(problem.extents)[1].last > std::numeric_limits<std::int32_t>::max();
}

std::string_view axis_index_type(const Problem& problem) {
  return needs_wide_axis(problem) ? "unsigned long long" : "unsigned";
}

std::size_t axis_state_bytes(const Problem& problem) {
  return state_bytes(reduce_spec_of(problem), needs_wide_axis(problem) ? 8 : 4);
}

std::string axis_prologue(const Problem& problem, std::string_view header) {
  const ReduceSpec spec = reduce_spec_of(problem);
  const OperationSource op = operation_source(spec, axis_index_type(problem));
  std::string source(kHostPragmas);
  for (const std::string& needed : op.headers) source += fmt::format("#include \"{}\"\n", needed);
  return source + fmt::format("#include \"{}\"\n\n"
                              "using Op = {};\nusing In = {};\nusing Out = {};\nusing Index = {};\n"
                              "static_assert(sizeof(Op::State) == {} && hone::kWorkspaceHeaderBytes == {},\n"
                              "              \"host and device disagree on the operation\");\n\n",
                              header, op.type, info(spec.dtype).cuda_name, info(spec.result_dtype()).cuda_name,
                              axis_index_type(problem), axis_state_bytes(problem), kWorkspaceHeaderBytes);
}

CombiningBlock::CombiningBlock(int threads_, std::int64_t all_outputs) : threads(threads_), outputs(1) {
  constexpr int kMostOutputs = 32;
  constexpr std::int64_t kEnoughBlocks = 64;
  while (outputs < kMostOutputs && 2 * outputs * kEnoughBlocks <= all_outputs) outputs *= 2;
}

std::string combining_entry(const CombiningBlock& block, int values) {
  return kernel_entry(fmt::format("hone::combine_parts<Op, {}, {}, Out, {}>", block.threads, block.outputs, values),
                      std::to_string(block.threads));
}

void add_combining_launch(LaunchList& launches, const CombiningBlock& block, const PartsArguments& arguments) {
  Launch& launch = launches.add();
  launch.entry = 1;
  launch.block.x = static_cast<unsigned>(block.threads);
  launch.grid.x =
      static_cast<unsigned>(std::max<std::int64_t>(1, divide_up(std::int64_t{arguments.outputs}, block.outputs)));
  launch.dependent_launch = true;
  launch.arguments.push(arguments);
}

}  // namespace hone
