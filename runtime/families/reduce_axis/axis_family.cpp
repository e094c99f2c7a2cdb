#include "runtime/families/reduce_axis/axis_family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/families/reduce/canonical_kernels.h"
#include "runtime/families/reduce/reduction_family.h"
#include "runtime/families/reduce/reduce_reference.h"

namespace hone {
namespace {

/// g++ 12.2 drops addends when it makes vectors of a loop that counts in several rows at once: with -O3 and without
/// this, count_nonzero of columns of 4999 ones came out as 4813. clang++ 14 and g++ -O2 are right.
constexpr std::string_view kHostPragmas =
    "#if defined(HONE_HOST_DEVICE) && !defined(__clang__)\n"
    "#pragma GCC optimize (\"no-tree-loop-vectorize\")\n"
    "#endif\n";

constexpr std::int64_t kMostTileBytes = 32 * 1024;  ///< of a staged tile, so that several blocks of an SM have one
constexpr std::int64_t kLeastTileBytes = 8 * 1024;

constexpr std::array<PruneRule<StagedTile>, 4> kStagedRules{{
    {"1, 4 and 16 threads for an output of a staged tile are enough of a choice, but for reproducible rows", kNotMeasured,
     [](const StagedTile& v) { return !is_canonical(v.problem) && v.lanes != 1 && v.lanes != 4 && v.lanes != 16; }},
    {"staged tiles of 8 to 32 KiB are worth trying", kNotMeasured,
     [](const StagedTile& v) { return v.bytes() > kMostTileBytes || v.bytes() < kLeastTileBytes; }},
    {"less than two slices fit a staged tile", kNotMeasured,
     [](const StagedTile& v) { return 2 * last_of(v.problem, 1) * last_of(v.problem, 2) > v.elements; }},
    {"too few or too many threads for an output of a staged tile", kNotMeasured,
     [](const StagedTile& v) {
       const std::int64_t reduced = v.problem.extents[1];
       return reduced > 64 * v.lanes || (v.lanes > 1 && reduced < 2 * v.lanes);
     }},
}};

/// Elements that verifying one call reduces on the CPU, and the fewest outputs that it looks at even so.
constexpr std::int64_t kVerifiedElements = std::int64_t{1} << 15;
constexpr std::int64_t kFewestOutputs = 3;
constexpr std::int64_t kMostOutputs = 2048;
constexpr std::int64_t kRuns = 8;

}  // namespace

AxisLayout AxisLayout::of_rows(const Problem& problem) {
  const auto [rows, columns, one] = problem.extents;
  return {.outer = rows,
          .reduced = columns,
          .inner = 1,
          .outer_stride = pitch_of(problem, 0, columns),
          .reduced_stride = 1};
}

AxisLayout AxisLayout::of_columns(const Problem& problem) {
  const auto [outer, reduced, inner] = problem.extents;
  const std::int64_t pitch = pitch_of(problem, 0, inner);
  return {.outer = outer, .reduced = reduced, .inner = inner, .outer_stride = reduced * pitch, .reduced_stride = pitch};
}

Rows AxisFamily::rows(const Problem& problem, int array) const {
  if (array != 0) return {};
  const std::int64_t length = problem.extents[row_extent()];
  return {.batch = row_extent() == 1 ? 1 : problem.extents[0],
          .rows = problem.extents[row_extent() - 1],
          .length = length,
          .pitch = pitch_of(problem, 0, length)};
}

std::string AxisFamily::fault_of(const Problem& problem) const {
  const std::int64_t widest = std::max<std::int64_t>(element_bytes(problem), 2 * sizeof(double));
  std::string fault = first_fault({LinesFamily::fault_of(problem), rows_fault("input", rows(problem, 0), widest)});
  if (!fault.empty()) return fault;
  if (problem.pitches[1] != 0)
    return fmt::format("an output pitch of {}, but its results lie side by side; pass 0", problem.pitches[1]);
  const AxisLayout asked = layout(problem);
  return asked.outputs() == 0 ? "" : elements_fault(reduce_spec_of(problem).op, asked.reduced);
}

std::uint32_t AxisFamily::alignment_of_rows(const Problem& problem) const {
  if (!is_aligned(problem)) return problem.alignment;  // heads are peeled wherever rows begin
  return common_alignment(problem.alignment, element_bytes(problem), {rows(problem, 0).pitch});
}

std::int64_t AxisFamily::bytes_moved(const Problem& problem) const {
  const AxisLayout asked = layout(problem);
  const std::int64_t result_bytes = bytes_of(reduce_spec_of(problem).result_dtype());
  return asked.outputs() * (asked.reduced * element_bytes(problem) + op_of(problem).outputs * result_bytes);
}

std::vector<BufferSpec> AxisFamily::buffers(const Problem& problem) const {
  const AxisLayout asked = layout(problem);
  return {input("in", problem.dtype, rows(problem, 0).elements()),
          output("out", reduce_spec_of(problem).result_dtype(), asked.outputs() * op_of(problem).outputs)};
}

Problem axis_problem(const KernelFamily& family, const ReduceSpec& spec, const Extents& extents, std::int64_t pitch,
                     std::int64_t row_length, std::uint32_t alignment) {
  Problem problem = reduce_problem(spec, 0);
  problem.family = &family;
  problem.extents = extents;
  problem.pitches = named_pitches({pitch, 0}, row_length, row_length);
  const std::uint32_t of_rows = common_alignment(alignment, element_bytes(problem), {pitch_of(problem, 0, row_length)});
  problem.alignment = peeled_alignment(spec.dtype, of_rows);
  return problem;
}

bool is_by_chunk(const Problem& problem) {
  const ReduceOp op = reduce_spec_of(problem).op;
  return op == ReduceOp::mean_variance || op == ReduceOp::logsumexp;
}

std::size_t axis_state_bytes(const Problem& problem) {
  return state_bytes(reduce_spec_of(problem), needs_wide_index(problem, 1));
}

std::string axis_prologue(const Problem& problem, std::string_view header) {
  const ReduceSpec spec = reduce_spec_of(problem);
  const bool has_wide_index = needs_wide_index(problem, 1);
  const OperationSource op = operation_source(spec, has_wide_index);
  const bool is_tree = is_canonical(problem);
  return std::string(kHostPragmas) + op.includes +
         fmt::format(
             "#include \"{}\"\n\n"
             "using Op = {};\nusing In = {};\nusing Out = {};\nusing Index = {};\n"
             "static_assert(sizeof(Op::State) == {} && hone::kWorkspaceHeaderBytes == {},\n"
             "              \"host and device disagree on the operation\");\n\n",
             header, is_tree ? fmt::format("hone::Canonical<{}>", op.type) : op.type, info(spec.dtype).cuda_name,
             info(spec.result_dtype()).cuda_name, index_type(has_wide_index), axis_state_bytes(problem),
             kWorkspaceHeaderBytes);
}

CombiningBlock::CombiningBlock(int threads_, std::int64_t all_outputs) : threads(threads_), outputs(1) {
  constexpr int kMostOutputs = 32;
  constexpr std::int64_t kEnoughBlocks = 64;
  while (outputs < kMostOutputs && 2 * outputs * kEnoughBlocks <= all_outputs) outputs *= 2;
}

std::string combining_entry(const CombiningBlock& block, int values) {
  return kernel_entry(fmt::format("hone::combine_parts<Op, {}, {}, Out, {}>", block.threads, block.outputs, values),
                      block.threads);
}

void add_combining_launch(LaunchList& launches, const CombiningBlock& block, const AxisLayout& layout, unsigned parts,
                          const void* workspace, void* out) {
  const PartsArguments arguments{.workspace = workspace,
                                 .out = out,
                                 .reduced = static_cast<std::uint64_t>(layout.reduced),
                                 .parts = parts,
                                 .outputs = static_cast<unsigned>(layout.outputs())};
  add_launch(launches, divide_up(layout.outputs(), block.outputs), block.threads, arguments).entry = 1;
}

/// 524288 rows of 100 f16 take reproducible logsumexp 58.6 µs by 80 rows a tile, of which 16 groups take each five, and
/// 66.9 by the 81 that have room; 131072 of 301 44.4 and 48.4 (H100, CUDA 13.0, 2026-11-28). Sums take as long either way,
/// and fast kernels were no faster.
std::int64_t StagedTile::slices(const AxisLayout& layout) const {
  const std::int64_t most = at_least_one(elements / at_least_one(layout.reduced * layout.inner));
  if (!is_canonical(problem)) return most;
  const std::int64_t groups = block_threads / lanes, of_whole_turns = most / groups * groups;
  return 8 * of_whole_turns >= 7 * most ? of_whole_turns : most;
}

std::int64_t StagedTile::tiles(const AxisLayout& layout) const {
  return at_least_one(divide_up(layout.outer, slices(layout)));
}

Reason StagedTile::is_valid() const {
  const std::int64_t reduced = last_of(problem, 1), inner = last_of(problem, 2);
  const bool fits = reduced <= elements && inner <= elements && reduced * inner <= elements;
  return first_reason({check_static_smem(bytes() + kMaxAlignment),
                       reason_if(lanes > 32, "an output of a staged tile has at most a warp"),
                       reason_if(!fits, "a slice does not fit a staged tile")});
}

Reason StagedTile::prune() const { return pruned_by(kStagedRules, *this); }

std::string StagedTile::source(bool is_of_rows, int values) const {
  return fmt::format(
      "using Kernel = hone::StagedReduce<Op, {}, {}, {}, {}, Out, {}>;\n"
      "static_assert(Kernel::kTileElements == {}, \"host and device disagree on the tile\");\n",
      block_threads, lanes, packs, is_of_rows, values, elements);
}

void StagedTile::add_launch(LaunchList& launches, const AxisLayout& layout, std::int64_t max_blocks,
                            std::span<void* const> buffers) const {
  hone::add_launch(launches, std::min(tiles(layout), max_blocks), block_threads,
                   StagedArguments{.in = buffers[0],
                                   .out = buffers[1],
                                   .slices = static_cast<std::uint64_t>(layout.outer),
                                   .reduced = static_cast<unsigned>(layout.reduced),
                                   .inner = static_cast<unsigned>(layout.inner),
                                   .slices_per_tile = static_cast<unsigned>(slices(layout))});
}

std::vector<Problem> AxisFamily::verified_problems(const Problem& problem) const {
  std::vector<Problem> problems{problem};
  const auto add = [&](std::size_t extent, std::int64_t pitch) {
    if (problem.extents[extent] > 1) problems.push_back(smaller(problem, extent, 1, {pitch, problem.pitches[1]}));
  };
  for (std::size_t extent = 0; extent < 2; ++extent)
    if (extent != row_extent()) add(extent, problem.pitches[0]);
  add(row_extent(), rows(problem, 0).pitch);
  if (problem.alignment < kMaxAlignment && problem.pitches[0] == 0) add(row_extent(), 0);
  return problems;
}

std::vector<ElementRange> AxisFamily::verified_lines(const Problem& problem) const {
  const AxisLayout asked = layout(problem);
  const std::int64_t outputs = asked.outputs();
  const std::int64_t each = std::clamp<std::int64_t>(asked.reduced, 1, reduce_reference::kInputPeriod);
  const std::int64_t most = std::clamp<std::int64_t>(kVerifiedElements / each, kFewestOutputs, kMostOutputs);
  if (outputs == 0) return {};
  // Where some repetition of the pattern ends.
  const std::int64_t periods = rows(problem, 0).elements() / reduce_reference::kInputPeriod;
  const std::int64_t odd = reduce_reference::kInputPeriod * at_least_one(periods * 2 / 3) - 1;
  const std::int64_t outer = std::min(odd / std::max<std::int64_t>(asked.outer_stride, 1), asked.outer - 1);
  const std::int64_t inner = odd % std::max<std::int64_t>(asked.outer_stride, 1) %
                             std::max<std::int64_t>(asked.inner == 1 ? 1 : asked.reduced_stride, 1);
  return spread_runs(outputs, at_least_one(most / kRuns), std::min(most, kRuns),
                     {outer * asked.inner + std::min(inner, asked.inner - 1)});
}

std::function<LinesFamily::Line(std::int64_t)> AxisFamily::lines(const Problem& problem, ArrayBytes) const {
  return [asked = layout(problem)](std::int64_t output) {
    return Line{.elements = asked.reduced, .first = asked.first_of(output), .stride = asked.reduced_stride};
  };
}

}  // namespace hone
