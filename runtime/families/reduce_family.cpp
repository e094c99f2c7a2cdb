#include "runtime/families/reduce_family.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/tuned_reduce.h>

#include "runtime/families/reduce_reference.h"
#include "runtime/jit/embedded_sources.h"

namespace hone {
namespace {

constexpr std::size_t kBlockThreads = 0, kVectorBytes = 1, kUnroll = 2, kTail = 3, kFinish = 4;

/// Beyond any address space, and far enough from the largest integer that sums of byte counts do not overflow.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

constexpr std::array<std::string_view, 3> kOpTemplates{"Sum", "Min", "Max"};

ReduceOp op_of(const Problem& problem) { return static_cast<ReduceOp>(problem.operation); }
DType result_of(const Problem& problem) { return reduce_result_dtype(op_of(problem), problem.dtype); }

/// Offsets are 64 bits wide where the winner's range reaches 2^31: 32-bit arithmetic is faster below.
bool needs_wide_index(const Problem& problem) {
  return size_range(size_class(problem.extents[0])).last > std::numeric_limits<std::int32_t>::max();
}

std::int64_t tiles_of(const Problem& problem, const ReduceVariant& variant) {
  const std::int64_t bytes = problem.extents[0] * static_cast<std::int64_t>(info(problem.dtype).size_bytes);
  return std::max<std::int64_t>(1, (bytes + variant.bytes_per_tile() - 1) / variant.bytes_per_tile());
}

std::int64_t grid_of(const Problem& problem, const Candidate& candidate) {
  return std::min(candidate.geometry.max_blocks, tiles_of(problem, ReduceVariant(candidate.variant)));
}

}  // namespace

ReduceVariant::ReduceVariant(const Variant& variant)
    : block_threads(variant[kBlockThreads]),
      vector_bytes(variant[kVectorBytes]),
      unroll(variant[kUnroll]),
      tail(static_cast<Tail>(variant[kTail])),
      finish(static_cast<Finish>(variant[kFinish])) {}

ReduceFamily::ReduceFamily()
    : space_({{"block_threads", {128, 256, 512, 1024}},
              {"vector_bytes", {16, 8, 4}},
              {"unroll", {1, 2, 4, 8}},
              {"tail", {0, 1}, {"shuffle", "shared_tree"}},
              {"finish", {0, 1, 2}, {"one_block", "last_block", "second_kernel"}}}) {}

std::span<const std::string_view> ReduceFamily::operations() const { return kReduceOpNames; }

std::span<const SourceFile> ReduceFamily::sources() const { return embedded::kernel_templates(); }

std::string ReduceFamily::refuse(const Problem& problem) const {
  if (problem.operation >= kReduceOpNames.size()) return fmt::format("reduce has no operation {}", problem.operation);
  if (problem.extents[0] < 0)
    return fmt::format("reduce was asked for n = {}, but a size cannot be negative", problem.extents[0]);
  const auto most = kMostBytes / static_cast<std::int64_t>(info(problem.dtype).size_bytes);
  if (problem.extents[0] > most)
    return fmt::format("reduce was asked for n = {}, but no memory holds more than {} elements of {}",
                       problem.extents[0], most, info(problem.dtype).name);
  return "";
}

std::string ReduceFamily::reject(const Problem& problem, const Variant& variant, const DeviceFacts& facts) const {
  const ReduceVariant reduce(variant);
  const auto element_bytes = static_cast<int>(info(problem.dtype).size_bytes);
  if (reduce.vector_bytes < element_bytes)
    return fmt::format("a vector of {} bytes holds no element of {}", reduce.vector_bytes, info(problem.dtype).name);
  if (reduce.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", reduce.block_threads, facts.max_threads_per_block);
  return "";
}

Unit ReduceFamily::unit(const Problem& problem, const Variant& variant) const {
  const ReduceVariant reduce(variant);
  const DTypeInfo& in = info(problem.dtype);
  const DTypeInfo& acc = info(result_of(problem));
  const std::string_view index = needs_wide_index(problem) ? "unsigned long long" : "unsigned";

  Unit unit;
  unit.name = fmt::format("reduce {} {} index={} {}", kReduceOpNames[problem.operation], in.name,
                          needs_wide_index(problem) ? 64 : 32, space_.to_string(variant));
  unit.source = fmt::format(
      "#include \"reduce.cuh\"\n\n"
      "using Kernel = hone::Reduce<hone::{op}<{acc}>, {in}, {acc}, {index}, {threads}, {vector}, {unroll}, "
      "hone::Tail::{tail}>;\n"
      "static_assert(Kernel::kTileElements * sizeof({in}) == {tile} && sizeof(Kernel::Partial) == {partial} &&\n"
      "              hone::kWorkspaceHeaderBytes == {header}, \"host and device disagree on the variant\");\n\n",
      fmt::arg("op", kOpTemplates[problem.operation]), fmt::arg("acc", acc.cuda_name), fmt::arg("in", in.cuda_name),
      fmt::arg("index", index), fmt::arg("threads", reduce.block_threads), fmt::arg("vector", reduce.vector_bytes),
      fmt::arg("unroll", reduce.unroll), fmt::arg("tail", space_.parameters()[kTail].spell(variant[kTail])),
      fmt::arg("tile", reduce.bytes_per_tile()), fmt::arg("partial", acc.size_bytes),
      fmt::arg("header", kWorkspaceHeaderBytes));

  const std::string parameters = fmt::format("const {}* in, {} n, {}* out", in.cuda_name, index, acc.cuda_name);
  const std::string entry =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}) hone_reduce", reduce.block_threads);
  switch (reduce.finish) {
    case ReduceVariant::Finish::one_block:
      unit.source += fmt::format("{}({}) {{ Kernel::one_block(in, n, out); }}\n", entry, parameters);
      break;
    case ReduceVariant::Finish::last_block:
      unit.source += fmt::format("{}({}, void* workspace) {{ Kernel::last_block(in, n, out, workspace); }}\n", entry,
                                 parameters);
      break;
    case ReduceVariant::Finish::second_kernel:
      unit.source += fmt::format(
          "{entry}(const {in}* in, {index} n, void* workspace) {{ Kernel::publish_partials(in, n, workspace); }}\n"
          "{entry}_finish(void* workspace, unsigned count, {acc}* out) {{\n"
          "  Kernel::combine_partials(Kernel::partials_of(workspace), count, out);\n}}\n",
          fmt::arg("entry", entry), fmt::arg("in", in.cuda_name), fmt::arg("index", index),
          fmt::arg("acc", acc.cuda_name));
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
          .bytes_in_flight_per_block = reduce.bytes_per_tile(),
          .one_block = reduce.finish == ReduceVariant::Finish::one_block,
          .launches = reduce.finish == ReduceVariant::Finish::second_kernel ? 2 : 1,
          .joins_blocks = reduce.finish == ReduceVariant::Finish::last_block};
}

std::int64_t ReduceFamily::bytes_moved(const Problem& problem) const {
  return problem.extents[0] * static_cast<std::int64_t>(info(problem.dtype).size_bytes) +
         static_cast<std::int64_t>(info(result_of(problem)).size_bytes);
}

std::size_t ReduceFamily::workspace_bytes(const Problem& problem, const Candidate& candidate) const {
  if (ReduceVariant(candidate.variant).finish == ReduceVariant::Finish::one_block) return 0;
  return kWorkspaceHeaderBytes +
         static_cast<std::size_t>(candidate.geometry.max_blocks) * info(result_of(problem)).size_bytes;
}

void ReduceFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                          void* workspace, LaunchList& launches) const {
  const ReduceVariant reduce(candidate.variant);
  const auto grid = static_cast<unsigned>(grid_of(problem, candidate));
  void* const in = buffers[0];
  void* const out = buffers[1];

  Launch& main = launches.add();
  main.grid.x = grid;
  main.block.x = static_cast<unsigned>(reduce.block_threads);
  main.arguments.push(in);
  if (needs_wide_index(problem)) {
    main.arguments.push(static_cast<std::uint64_t>(problem.extents[0]));
  } else {
    main.arguments.push(static_cast<std::uint32_t>(problem.extents[0]));
  }
  if (reduce.finish != ReduceVariant::Finish::second_kernel) main.arguments.push(out);
  if (reduce.finish != ReduceVariant::Finish::one_block) main.arguments.push(workspace);

  if (reduce.finish == ReduceVariant::Finish::second_kernel) {
    Launch& finish = launches.add();
    finish.entry = 1;
    finish.block.x = static_cast<unsigned>(reduce.block_threads);
    finish.arguments.push(workspace);
    finish.arguments.push(grid);
    finish.arguments.push(out);
  }
}

std::vector<BufferSpec> ReduceFamily::buffers(const Problem& problem) const {
  return {{.name = "in", .is_input = true, .dtype = problem.dtype, .elements = problem.extents[0]},
          {.name = "out", .is_input = false, .dtype = result_of(problem), .elements = 1}};
}

std::span<const std::string_view> ReduceFamily::input_kinds(const Problem& problem) const {
  return reduce_reference::input_kinds(problem.dtype);
}

std::vector<std::byte> ReduceFamily::input_pattern(const Problem& problem, int /*buffer*/,
                                                   std::string_view kind) const {
  return reduce_reference::input_pattern(problem.dtype, problem.extents[0], kind);
}

std::string ReduceFamily::verify(const Problem& problem, const Candidate& candidate,
                                 std::span<const std::vector<std::byte>> patterns,
                                 std::span<const std::vector<std::byte>> outputs) const {
  const ReduceVariant reduce(candidate.variant);
  // The longest chain of additions that one element goes through: in its tile, from tile to tile, in the last tile,
  // among the elements of a pack, in two block trees of at most 10 levels, and over the partials of the blocks.
  const std::int64_t grid = grid_of(problem, candidate);
  const std::int64_t rounds = (tiles_of(problem, reduce) + grid - 1) / grid;
  const std::int64_t chain = rounds + 2 * reduce.unroll + 4 + 20 + grid / reduce.block_threads + 2;
  return reduce_reference::verify(op_of(problem), problem.dtype, problem.extents[0], chain, patterns[0], outputs[0]);
}

const KernelFamily& reduce_family() {
  static const ReduceFamily family;
  return family;
}

Problem reduce_problem(ReduceOp op, DType dtype, std::int64_t n, std::uint32_t alignment) {
  // The kernel peels up to the first whole pack, so what matters is whether there is anything to peel.
  const auto element_bytes = static_cast<std::uint32_t>(info(dtype).size_bytes);
  return {.family = &reduce_family(),
          .operation = static_cast<std::uint8_t>(op),
          .dtype = dtype,
          .alignment = alignment >= kMaxAlignment ? kMaxAlignment : element_bytes,
          .extents = {n, 1, 1}};
}

ReduceOp parse_reduce_op(std::string_view name) {
  const auto op = std::find(kReduceOpNames.begin(), kReduceOpNames.end(), name);
  if (op == kReduceOpNames.end())
    throw Error(ErrorCode::not_found, fmt::format("there is no reduction '{}'; there are: sum, min, max", name));
  return static_cast<ReduceOp>(op - kReduceOpNames.begin());
}

}  // namespace hone
