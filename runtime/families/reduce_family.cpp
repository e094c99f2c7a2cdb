#include "runtime/families/reduce_family.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/families/reduce_reference.h"
#include "runtime/jit/embedded_sources.h"

namespace hone {
namespace {

constexpr std::size_t kBlockThreads = 0, kUnroll = 1, kFinish = 2;

/// Beyond any address space, and far enough from the largest integer that sums of byte counts do not overflow.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

/// A thread's tile is 16 bytes a pack, and of small elements each may take a register of its own.
constexpr int kMostPacksPerBlock = 4096;
constexpr int kMostPacksOfSmallElements = 4;

/// How an operation is spelled in kernel source, and what it carries from element to element.
struct OpTemplate {
  std::string_view name;
  std::string_view header;
  int accumulators = 1;
  int indices = 0;
};

constexpr std::array<OpTemplate, kReduceOps.size()> kOpTemplates{{
    {"Sum", "reduce_ops.cuh"},
    {"Product", "reduce_ops.cuh"},
    {"Min", "reduce_ops.cuh"},
    {"Max", "reduce_ops.cuh"},
    {"MinMax", "extreme_ops.cuh", 2},
    {"ArgMin", "extreme_ops.cuh", 1, 1},
    {"ArgMax", "extreme_ops.cuh", 1, 1},
    {"Mean", "moment_ops.cuh"},
    {"MeanVariance", "moment_ops.cuh", 2, 1},
    {"SumOfSquares", "reduce_ops.cuh"},
    {"L1Norm", "reduce_ops.cuh"},
    {"L2Norm", "reduce_ops.cuh"},
    {"MaxNorm", "reduce_ops.cuh"},
    {"LogSumExp", "moment_ops.cuh", 2},
    {"Dot", "reduce_ops.cuh"},
    {"Any", "reduce_ops.cuh"},
    {"All", "reduce_ops.cuh"},
    {"CountNonzero", "reduce_ops.cuh"},
}};

constexpr auto kOperations = [] {
  std::array<std::string_view, kReduceOps.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kReduceOps[i].name;
  return names;
}();

ReduceSpec spec_of(const Problem& problem) {
  return {.op = static_cast<ReduceOp>(problem.operation),
          .dtype = problem.dtype,
          .nan = problem.nan,
          .accumulator = problem.accumulator,
          .result = problem.result};
}

const ReduceOpInfo& op_of(const Problem& problem) { return kReduceOps[problem.operation]; }

std::int64_t element_bytes(const Problem& problem) { return static_cast<std::int64_t>(info(problem.dtype).size_bytes); }

/// 16, but for two arrays that are out of step, which no peeling brings to the same alignment.
std::int64_t vector_bytes(const Problem& problem) {
  return op_of(problem).inputs == 1 ? kMaxAlignment : std::max<std::int64_t>(problem.alignment, element_bytes(problem));
}

std::int64_t bytes_per_tile(const Problem& problem, const ReduceVariant& variant) {
  return variant.block_threads * variant.unroll * vector_bytes(problem);
}

/// Offsets are 64 bits wide where the winner's range reaches 2^31: 32-bit arithmetic is faster below.
bool needs_wide_index(const Problem& problem) {
  return size_range(size_class(problem.extents[0])).last > std::numeric_limits<std::int32_t>::max();
}

std::size_t partial_bytes(const Problem& problem) {
  const OpTemplate& op = kOpTemplates[problem.operation];
  const ReduceSpec spec = spec_of(problem);
  const bool is_exact = !info(spec.dtype).is_floating() && info(spec.dtype).size_bytes <= 2;
  if (spec.op == ReduceOp::mean_variance && is_exact) return 24;  // hone::IntegerSums
  const int indices = spec.op == ReduceOp::mean && spec.nan == NanPolicy::ignore ? 1 : op.indices;
  return static_cast<std::size_t>(op.accumulators) * info(spec.accumulator_dtype()).size_bytes +
         static_cast<std::size_t>(indices) * (needs_wide_index(problem) ? 8 : 4);
}

std::int64_t tiles_of(const Problem& problem, const ReduceVariant& variant) {
  const std::int64_t tile = bytes_per_tile(problem, variant);
  return std::max<std::int64_t>(1, (problem.extents[0] * element_bytes(problem) + tile - 1) / tile);
}

std::int64_t grid_of(const Problem& problem, const Candidate& candidate) {
  const ReduceVariant variant(candidate.variant);
  if (variant.cluster_blocks() > 1) return variant.cluster_blocks();
  return std::min(candidate.geometry.max_blocks, tiles_of(problem, variant));
}

/// Why dtypes do not go with the operation; "" if they do.
std::string refuse_dtypes(const ReduceSpec& spec) {
  const auto refused = [&](std::string_view what) {
    return fmt::format("reduce {} of {} {}", name(spec.op), info(spec.dtype).name, what);
  };
  if (!reduce_supports(spec.op, spec.dtype)) return refused("is not defined; it takes f16, bf16, f32 and f64");
  if (spec.accumulator && !reduce_accepts_accumulator(spec.op, spec.dtype, *spec.accumulator))
    return refused(fmt::format("cannot be accumulated in {}; its own choice is {}", info(*spec.accumulator).name,
                               info(reduce_accumulator_dtype(spec.op, spec.dtype)).name));
  if (spec.result && !reduce_accepts_result(spec.op, spec.dtype, spec.accumulator_dtype(), *spec.result))
    return refused(fmt::format("cannot be stored as {}; its own choice is {}", info(*spec.result).name,
                               info(reduce_result_dtype(spec.op, spec.dtype, spec.accumulator_dtype())).name));
  return "";
}

}  // namespace

ReduceVariant::ReduceVariant(const Variant& variant)
    : block_threads(variant[kBlockThreads]), unroll(variant[kUnroll]), finish(static_cast<Finish>(variant[kFinish])) {}

int ReduceVariant::cluster_blocks() const {
  return finish == Finish::cluster_8 ? 8 : finish == Finish::cluster_16 ? 16 : 1;
}

ReduceFamily::ReduceFamily()
    : space_({{"block_threads", {128, 256, 512, 1024}},
              {"unroll", {1, 2, 4, 8}},
              {"finish", {0, 1, 2, 3, 4}, {"one_block", "cluster_8", "cluster_16", "last_block", "second_kernel"}}}) {}

std::span<const std::string_view> ReduceFamily::operations() const { return kOperations; }

std::span<const SourceFile> ReduceFamily::sources() const { return embedded::kernel_templates(); }

std::string ReduceFamily::refuse(const Problem& problem) const {
  if (problem.operation >= kReduceOps.size()) return fmt::format("reduce has no operation {}", problem.operation);
  const ReduceSpec spec = spec_of(problem);
  if (std::string refusal = refuse_dtypes(spec); !refusal.empty()) return refusal;
  const std::int64_t n = problem.extents[0];
  if (n < 0) return fmt::format("reduce was asked for n = {}, but a size cannot be negative", n);
  if (n == 0 && op_of(problem).needs_elements)
    return fmt::format("reduce was asked for the {} of an empty array, which has none", op_of(problem).name);
  const std::int64_t most = kMostBytes / element_bytes(problem);
  if (n > most)
    return fmt::format("reduce was asked for n = {}, but no memory holds more than {} elements of {}", n, most,
                       info(problem.dtype).name);
  return "";
}

std::string ReduceFamily::reject(const Problem& problem, const Variant& variant, const DeviceFacts& facts) const {
  const ReduceVariant reduce(variant);
  if (reduce.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", reduce.block_threads, facts.max_threads_per_block);
  if (reduce.cluster_blocks() > std::max(1, facts.max_cluster_blocks))
    return fmt::format("clusters of {} blocks, the device allows {}", reduce.cluster_blocks(), facts.max_cluster_blocks);
  if (reduce.block_threads * reduce.unroll > kMostPacksPerBlock ||
      (element_bytes(problem) <= 2 && reduce.unroll > kMostPacksOfSmallElements))
    return fmt::format("a tile of {} packs a thread, {} threads a block: more than the registers hold", reduce.unroll,
                       reduce.block_threads);
  return "";
}

Unit ReduceFamily::unit(const Problem& problem, const Variant& variant) const {
  const ReduceVariant reduce(variant);
  const ReduceSpec spec = spec_of(problem);
  const OpTemplate& op = kOpTemplates[problem.operation];
  const std::string_view in = info(problem.dtype).cuda_name;
  const std::string_view out = info(spec.result_dtype()).cuda_name;
  const std::string_view index = needs_wide_index(problem) ? "unsigned long long" : "unsigned";
  const bool is_pair = op_of(problem).inputs == 2;

  Unit unit;
  unit.name = fmt::format("{} index={} {}", to_string(problem), needs_wide_index(problem) ? 64 : 32,
                          space_.to_string(variant));
  unit.source = fmt::format(
      "#include \"{header}\"\n#include \"reduce.cuh\"\n\n"
      "using Op = hone::{op}<{in}, {acc}, {index}, {ignore_nan}>;\n"
      "using Kernel = hone::Reduce<Op, hone::{arrays}, {threads}, {vector}, {unroll}>;\n"
      "static_assert(Kernel::kTilePacks * {vector} == {tile} && sizeof(Op::State) == {partial} &&\n"
      "              hone::kWorkspaceHeaderBytes == {workspace_header}, \"host and device disagree on the variant\");\n\n",
      fmt::arg("header", op.header), fmt::arg("op", op.name), fmt::arg("in", in),
      fmt::arg("acc", info(spec.accumulator_dtype()).cuda_name), fmt::arg("index", index),
      fmt::arg("ignore_nan", spec.nan == NanPolicy::ignore), fmt::arg("arrays", is_pair ? "TwoArrays" : "OneArray"),
      fmt::arg("threads", reduce.block_threads), fmt::arg("vector", vector_bytes(problem)),
      fmt::arg("unroll", reduce.unroll), fmt::arg("tile", bytes_per_tile(problem, reduce)),
      fmt::arg("partial", partial_bytes(problem)), fmt::arg("workspace_header", kWorkspaceHeaderBytes));

  const std::string arrays = is_pair ? fmt::format("const {0}* a, const {0}* b, {1} n", in, index)
                                     : fmt::format("const {}* in, {} n", in, index);
  const std::string_view source = is_pair ? "{a, b}" : "{in}";
  const std::string entry =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}) hone_reduce", reduce.block_threads);
  switch (reduce.finish) {
    case ReduceVariant::Finish::one_block:
      unit.source += fmt::format("{}({}, {}* out) {{ Kernel::one_block({}, n, out); }}\n", entry, arrays, out, source);
      break;
    case ReduceVariant::Finish::cluster_8:
    case ReduceVariant::Finish::cluster_16:
      unit.source += fmt::format("{}({}, {}* out) {{ Kernel::cluster<{}>({}, n, out); }}\n", entry, arrays, out,
                                 reduce.cluster_blocks(), source);
      break;
    case ReduceVariant::Finish::last_block:
      unit.source += fmt::format("{}({}, void* workspace, {}* out) {{ Kernel::last_block({}, n, workspace, out); }}\n",
                                 entry, arrays, out, source);
      break;
    case ReduceVariant::Finish::second_kernel:
      unit.source += fmt::format(
          "{0}({1}, void* workspace) {{ Kernel::publish_partials({2}, n, workspace); }}\n"
          "{0}_finish(const void* workspace, unsigned count, {3} n, {4}* out) {{\n"
          "  Kernel::finish(workspace, count, n, out);\n}}\n",
          entry, arrays, source, index, out);
      break;
  }
  unit.entries.emplace_back("hone_reduce");
  if (reduce.finish == ReduceVariant::Finish::second_kernel) unit.entries.emplace_back("hone_reduce_finish");
  return unit;
}

WorkShape ReduceFamily::shape(const Problem& problem, const Variant& variant) const {
  const ReduceVariant reduce(variant);
  return {.block_threads = reduce.block_threads,
          .dynamic_smem_bytes = 0,
          .tiles = tiles_of(problem, reduce),
          .bytes_in_flight_per_block = bytes_per_tile(problem, reduce) * op_of(problem).inputs,
          .one_block = reduce.finish == ReduceVariant::Finish::one_block || reduce.cluster_blocks() > 1,
          .launches = reduce.finish == ReduceVariant::Finish::second_kernel ? 2 : 1,
          .joins_blocks = reduce.finish == ReduceVariant::Finish::last_block,
          .dependent_launch = true,
          .cluster_blocks = reduce.cluster_blocks()};
}

std::int64_t ReduceFamily::bytes_moved(const Problem& problem) const {
  const ReduceOpInfo& op = op_of(problem);
  return problem.extents[0] * element_bytes(problem) * op.inputs +
         static_cast<std::int64_t>(info(spec_of(problem).result_dtype()).size_bytes) * op.outputs;
}

std::size_t ReduceFamily::workspace_bytes(const Problem& problem, const Candidate& candidate) const {
  const ReduceVariant reduce(candidate.variant);
  if (reduce.finish != ReduceVariant::Finish::last_block && reduce.finish != ReduceVariant::Finish::second_kernel) return 0;
  return kWorkspaceHeaderBytes + static_cast<std::size_t>(candidate.geometry.max_blocks) * partial_bytes(problem);
}

void ReduceFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                          void* workspace, LaunchList& launches) const {
  const ReduceVariant reduce(candidate.variant);
  const auto grid = static_cast<unsigned>(grid_of(problem, candidate));
  const auto push_count = [&](Launch& launch) {
    if (needs_wide_index(problem)) {
      launch.arguments.push(static_cast<std::uint64_t>(problem.extents[0]));
    } else {
      launch.arguments.push(static_cast<std::uint32_t>(problem.extents[0]));
    }
  };

  Launch& main = launches.add();
  main.grid.x = grid;
  main.block.x = static_cast<unsigned>(reduce.block_threads);
  main.cluster_blocks = static_cast<unsigned>(reduce.cluster_blocks());
  main.dependent_launch = true;
  for (void* in : buffers.first(buffers.size() - 1)) main.arguments.push(in);
  push_count(main);
  if (workspace_bytes(problem, candidate) > 0) main.arguments.push(workspace);

  if (reduce.finish != ReduceVariant::Finish::second_kernel) {
    main.arguments.push(buffers.back());
    return;
  }
  Launch& finish = launches.add();
  finish.entry = 1;
  finish.block.x = static_cast<unsigned>(reduce.block_threads);
  finish.dependent_launch = true;
  finish.arguments.push(workspace);
  finish.arguments.push(grid);
  push_count(finish);
  finish.arguments.push(buffers.back());
}

std::vector<BufferSpec> ReduceFamily::buffers(const Problem& problem) const {
  const ReduceOpInfo& op = op_of(problem);
  std::vector<BufferSpec> buffers;
  for (int i = 0; i < op.inputs; ++i)
    buffers.push_back({.name = op.inputs == 1 ? "in" : i == 0 ? "a" : "b",
                       .is_input = true,
                       .dtype = problem.dtype,
                       .elements = problem.extents[0]});
  buffers.push_back(
      {.name = "out", .is_input = false, .dtype = spec_of(problem).result_dtype(), .elements = op.outputs});
  return buffers;
}

std::span<const std::string_view> ReduceFamily::input_kinds(const Problem& problem) const {
  return reduce_reference::input_kinds(spec_of(problem));
}

std::vector<std::byte> ReduceFamily::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  return reduce_reference::input_pattern(spec_of(problem), buffer, problem.extents[0], kind);
}

std::string ReduceFamily::verify(const Problem& problem, const Candidate& candidate,
                                 std::span<const std::vector<std::byte>> patterns,
                                 std::span<const std::vector<std::byte>> outputs) const {
  const ReduceVariant reduce(candidate.variant);
  // The longest chain of combinations that one element goes through: in the tree of its tile, from tile to tile, in the
  // last tile, with the ends, in two block trees of at most 10 levels, and over the partials of the blocks.
  const std::int64_t grid = grid_of(problem, candidate);
  const std::int64_t rounds = (tiles_of(problem, reduce) + grid - 1) / grid;
  const std::int64_t tile_levels = 7;  // of 8 packs of 16 elements
  const std::int64_t chain = tile_levels + rounds + reduce.unroll + 1 + 2 * 10 + grid / reduce.block_threads + 1;
  return reduce_reference::verify(spec_of(problem), problem.extents[0], chain, patterns, outputs[0]);
}

const KernelFamily& reduce_family() {
  static const ReduceFamily family;
  return family;
}

Problem reduce_problem(const ReduceSpec& spec, std::int64_t n, std::uint32_t alignment) {
  Problem problem{.family = &reduce_family(),
                  .operation = static_cast<std::uint8_t>(spec.op),
                  .dtype = spec.dtype,
                  .alignment = alignment,
                  .extents = {n, 1, 1}};
  // One array is peeled up to its first whole pack, so what matters is whether there is anything to peel.
  if (alignment < kMaxAlignment && info(spec.op).inputs == 1)
    problem.alignment = static_cast<std::uint32_t>(info(spec.dtype).size_bytes);
  // What the family would choose anyway is no other problem.
  if (spec.accumulator != reduce_accumulator_dtype(spec.op, spec.dtype)) problem.accumulator = spec.accumulator;
  if (spec.result != reduce_result_dtype(spec.op, spec.dtype, spec.accumulator_dtype())) problem.result = spec.result;
  if (info(spec.dtype).is_floating()) problem.nan = spec.nan;
  return problem;
}

ReduceOp parse_reduce_op(std::string_view name) {
  std::string known;
  for (const ReduceOpInfo& op : kReduceOps) {
    if (op.name == name) return op.op;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", op.name);
  }
  throw Error(ErrorCode::not_found, fmt::format("there is no reduction '{}'; there are: {}", name, known));
}

}  // namespace hone
