#include "runtime/families/copy/copy_family.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "kernel_templates/copy_arguments.h"
#include "runtime/families/copy/copy_verifier.h"
#include "runtime/families/counts.h"
#include "runtime/families/moved_elements.h"
#include "runtime/families/work_division.h"
#include "runtime/jit/include_closure.h"

namespace hone {
namespace {

constexpr std::array<std::string_view, 1> kOperations{"copy"};

/// A thread's packs take four registers each.
constexpr int kMostPacksPerBlock = 4096;

std::int64_t vector_bytes(const Problem& problem) {
  return std::max<std::int64_t>(problem.alignment, element_bytes(problem));
}

bool is_one_row(const Problem& problem) { return problem.extents[0] == 1; }

Pitches pitches_of(const Problem& problem) {
  return moved::pitches_of(problem, problem.extents[1], problem.extents[1]);
}

/// Packs of a row, at the addresses that touch the most of them. One row begins with a whole pack.
std::int64_t packs_per_row(const Problem& problem) {
  const std::int64_t width = vector_bytes(problem) / element_bytes(problem);
  const std::int64_t columns = problem.extents[1];
  const bool is_aligned = is_one_row(problem) || pitches_of(problem)[1] % width == 0;
  return (columns + (is_aligned ? width - 1 : 2 * width - 2)) / width;
}

std::int64_t tiles_of(const Problem& problem, const CopyPolicy& policy) {
  const std::int64_t tile = std::int64_t{policy.block_threads} * policy.unroll;
  return divide_up(problem.extents[0] * packs_per_row(problem), tile);
}

/// By the largest extents that a winner serves.
bool needs_wide_index(const Problem& problem) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  const std::array<SizeRange, 3> sizes = size_ranges(problem.extents);
  const double width = static_cast<double>(vector_bytes(problem) / element_bytes(problem));
  const double columns = static_cast<double>(sizes[1].last);
  return columns > kMost || static_cast<double>(sizes[0].last) * (columns / width + 2) > kMost;
}

std::string refuse_extents(const Problem& problem) {
  const auto [rows, columns, unused] = problem.extents;
  if (rows < 1 || columns < 1)
    return fmt::format("copy was asked for {} × {} elements; every extent must be at least 1", rows, columns);
  if (unused != 1) return fmt::format("copy was asked for a third extent of {}; it has two", unused);
  const Pitches pitches = pitches_of(problem);
  for (std::size_t i = 0; i < pitches.size(); ++i) {
    const std::string_view side = i == 0 ? "input" : "output";
    if (pitches[i] < columns)
      return fmt::format(
          "copy was asked for rows of {} elements in the {} at a pitch of {}: it must be at least as long", columns,
          side, pitches[i]);
    if (!product_within_memory({rows, pitches[i], element_bytes(problem)}))
      return fmt::format("copy was asked for {} rows {} elements apart in the {}: no memory holds them", rows,
                         pitches[i], side);
  }
  if (!is_one_row(problem) && (pitches[1] - pitches[0]) * element_bytes(problem) % problem.alignment != 0)
    return fmt::format(
        "copy was asked for alignment {}, but pitches of {} and {} elements of {} bytes differ otherwise; "
        "copy_problem() finds the alignment",
        problem.alignment, pitches[0], pitches[1], element_bytes(problem));
  return "";
}

}  // namespace

const ParameterSpace& CopyPolicy::space() {
  using P = CopyPolicy;
  // The model cannot tell hints apart, nor most unrolls: the first is the untuned choice.
  static const ParameterSpace space =
      space_of<P>(PolicyField{&P::block_threads, ordinal("block_threads", {256, 128, 512, 1024})},
                  PolicyField{&P::unroll, ordinal("unroll", {4, 2, 8, 1})},
                  PolicyField{&P::hint, categorical("hint", {"none", "streaming"})});
  return space;
}

std::span<const std::string_view> CopyFamily::operations() const { return kOperations; }

std::span<const SourceFile> CopyFamily::sources() const {
  static const std::vector<SourceFile> sources = kernel_sources({"copy.cuh"});
  return sources;
}

std::string CopyFamily::refuse(const Problem& problem) const {
  if (problem.operation >= kOperations.size()) return fmt::format("copy has no operation {}", problem.operation);
  if (std::string refusal = moved::refuse_dtype(name(), problem.dtype); !refusal.empty()) return refusal;
  if (problem.accumulator || problem.result) return "copy accumulates nothing and keeps the type of the elements";
  return refuse_extents(problem);
}

std::string CopyFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                                 const DeviceFacts& facts) const {
  const auto copy = policy.as<CopyPolicy>();
  if (copy.block_threads > facts.max_threads_per_block)
    return fmt::format("{} threads a block, the device allows {}", copy.block_threads, facts.max_threads_per_block);
  if (copy.hint == CopyPolicy::Hint::streaming && vector_bytes(problem_class.typical()) != 16)
    return "only vectors of 16 bytes have a hint";
  return "";
}

std::string CopyFamily::prune(const ProblemClass&, const Policy& policy, const DeviceFacts&) const {
  const auto copy = policy.as<CopyPolicy>();
  if (copy.block_threads * copy.unroll > kMostPacksPerBlock)
    return fmt::format("a tile of {} packs a thread, {} threads a block: more than the registers hold", copy.unroll,
                       copy.block_threads);
  return "";
}

Unit CopyFamily::unit(const ProblemClass& problem_class, const Policy& policy) const {
  const Problem& problem = problem_class.typical();
  const auto copy = policy.as<CopyPolicy>();
  const bool is_wide = needs_wide_index(problem);
  Unit unit;
  unit.name = fmt::format("{} index={} {}", to_string(problem_class), is_wide ? 64 : 32, space().to_string(policy));
  unit.source = fmt::format(
      "#include \"copy.cuh\"\n\n"
      "using T = {type};\n"
      "using Index = {index};\n"
      "using Kernel = hone::Copy<T, {vector}, {threads}, {unroll}, {streaming}, Index>;\n",
      fmt::arg("type", info(problem.dtype).cuda_name), fmt::arg("index", is_wide ? "unsigned long long" : "unsigned"),
      fmt::arg("vector", vector_bytes(problem)), fmt::arg("threads", copy.block_threads),
      fmt::arg("unroll", copy.unroll), fmt::arg("streaming", copy.hint == CopyPolicy::Hint::streaming));
  unit.entries.push_back(
      kernel_entry(is_one_row(problem) ? "Kernel::copy_row" : "Kernel::copy_rows", std::to_string(copy.block_threads)));
  return unit;
}

WorkShape CopyFamily::shape(const Problem& problem, const Policy& policy) const {
  const auto copy = policy.as<CopyPolicy>();
  return {.block_threads = copy.block_threads,
          .tiles = std::max<std::int64_t>(1, tiles_of(problem, copy)),
          .bytes_in_flight_per_block = copy.block_threads * copy.unroll * vector_bytes(problem),
          .dependent_launch = true,
          .independent_blocks = true};
}

std::int64_t CopyFamily::bytes_moved(const Problem& problem) const {
  return 2 * problem.extents[0] * problem.extents[1] * element_bytes(problem);
}

void CopyFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
                        LaunchList& launches) const {
  const auto copy = candidate.policy.as<CopyPolicy>();
  Launch& launch = launches.add();
  const std::int64_t tiles = std::max<std::int64_t>(1, tiles_of(problem, copy));
  launch.grid.x = static_cast<unsigned>(std::min(candidate.geometry.max_blocks, tiles));
  launch.block.x = static_cast<unsigned>(copy.block_threads);
  launch.dependent_launch = true;
  const auto [rows, columns, unused] = problem.extents;
  const auto [in_pitch, out_pitch] = pitches_of(problem);
  launch.arguments.push(CopyArguments{.in = buffers[0],
                                      .out = buffers[1],
                                      .rows = static_cast<std::uint64_t>(rows),
                                      .columns = static_cast<std::uint64_t>(columns),
                                      .windows = static_cast<std::uint64_t>(packs_per_row(problem)),
                                      .in_pitch = in_pitch,
                                      .out_pitch = out_pitch});
}

std::vector<BufferSpec> CopyFamily::buffers(const Problem& problem) const {
  const Pitches pitches = pitches_of(problem);
  const auto elements = [&](std::int64_t pitch) { return (problem.extents[0] - 1) * pitch + problem.extents[1]; };
  return {{.name = "in", .is_input = true, .dtype = problem.dtype, .elements = elements(pitches[0])},
          {.name = "out",
           .is_input = false,
           .dtype = problem.dtype,
           .elements = elements(pitches[1]),
           .alignment = problem.alignment}};
}

const Verifier& CopyFamily::verifier() const {
  static const CopyVerifier verifier;
  return verifier;
}

const KernelFamily& copy_family() {
  static const CopyFamily family;
  return family;
}

Problem copy_problem(const CopySpec& spec, std::uint32_t alignment) {
  const std::int64_t parts = spec.element_bytes == 16 ? 2 : 1;
  const std::size_t bytes = spec.element_bytes / static_cast<std::size_t>(parts);
  Problem problem{.family = &copy_family(),
                  .dtype = moved::dtype_of_size(bytes),
                  .extents = {spec.rows, parts * spec.columns, 1},
                  .pitches = {parts * spec.input_pitch(), parts * spec.output_pitch()}};
  std::int64_t all = 0;
  if (spec.rows > 0 && spec.input_pitch() == spec.columns && spec.output_pitch() == spec.columns &&
      !__builtin_mul_overflow(spec.rows, problem.extents[1], &all))
    problem.extents = {1, all, 1};
  // A side by side pitch has no other name.
  for (std::int64_t& pitch : problem.pitches)
    if (problem.extents[0] == 1 || pitch == problem.extents[1]) pitch = 0;
  const auto apart = static_cast<std::uint64_t>(problem.pitches[0] == problem.pitches[1]
                                                    ? 0
                                                    : pitches_of(problem)[1] - pitches_of(problem)[0]) * bytes;
  problem.alignment = 1u << std::countr_zero(apart | std::uint64_t{alignment} | kMaxAlignment);
  return problem;
}

}  // namespace hone
