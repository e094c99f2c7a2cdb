#include "runtime/families/spec/spec_family.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/error.h>

#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/spec/scalar_range.h"

namespace hone {

std::span<const std::string_view> SpecFamily::operations() const {
  static constexpr std::array<std::string_view, 1> kNames{"run"};
  return kNames;
}

std::string SpecFamily::refuse(const Problem& problem) const {
  const std::string& name = parsed_.spec.name;
  if (problem.operation != 0 || problem.dtype != parsed_.dtype)
    return fmt::format("{} has one operation, run, of {}", name, info(parsed_.dtype).name);
  if (problem.alignment < parsed_.spec.alignment)
    return fmt::format("{} takes arrays aligned to {} bytes, not to {}", name, parsed_.spec.alignment,
                       problem.alignment);
  if (problem.numerics != Numerics::fast) return fmt::format("{} has no reproducible numerics", name);
  if (problem.accumulator || problem.result || problem.nan != NanPolicy::propagate || problem.pitches != Pitches{})
    return fmt::format("{} has no choice of an accumulator, a result, a NaN policy or pitches", name);
  for (std::size_t i = 0; i < problem.extents.size(); ++i) {
    if (i >= parsed_.extent_names.size() && problem.extents[i] != 1)
      return fmt::format("{} has the extents {}", name, fmt::join(parsed_.extent_names, " × "));
    if (problem.extents[i] < 0) return fmt::format("{}: {} is {}", name, parsed_.extent_names[i], problem.extents[i]);
  }
  try {
    const ParsedSpec::Variables known = parsed_.variables(parsed_.default_policy, problem.extents);
    for (std::size_t i = 0; i < parsed_.spec.arguments.size(); ++i) {
      const KernelArgument& argument = parsed_.spec.arguments[i];
      const bool is_scalar = argument.kind == KernelArgument::Kind::scalar;
      const std::int64_t value = is_scalar ? 0 : parsed_.elements[i].evaluate(known);
      if (!argument.is_array()) {
        const double number_of_call =
            is_scalar ? number(problem, parsed_.default_policy, i) : static_cast<double>(value);
        if (const std::string fault = scalar_fault(argument, number_of_call); !fault.empty())
          return fmt::format("{}: {}", name, fault);
        continue;
      }
      const auto bytes = static_cast<std::int64_t>(info(argument.dtype).size_bytes);
      if (value < 0 || !product_within_memory({value, bytes}))
        return fmt::format("{}: {} would have {} elements ({})", name, argument.name, value,
                           parsed_.elements[i].text());
      if (!argument.below.empty() && value > 0 && parsed_.below[i].evaluate(known) < 1)
        return fmt::format("{}: {} has indices below {}, and there is none", name, argument.name, argument.below);
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Reason SpecFamily::is_valid(const ProblemClass& problem_class, const Policy& policy,
                            const DeviceFacts& facts) const try {
  const ParsedSpec::Variables known = parsed_.variables(policy);
  for (const Expression& each : parsed_.where)
    if (each.evaluate(known) == 0) return fmt::format("where {}", each.text());
  // The largest member whose grid can be counted: the last class has no end.
  Extents extents = problem_class.typical().extents;
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    if (problem_class.sizes()[axis].last <= kMostBytes) extents[axis] = problem_class.sizes()[axis].last;
  const ParsedSpec::Grid grid = parsed_.grid(extents, policy);
  std::int64_t threads = 1;
  for (const std::int64_t side : grid.block) {
    if (side < 1) return fmt::format("a block of {} × {} × {} threads", grid.block[0], grid.block[1], grid.block[2]);
    if (__builtin_mul_overflow(threads, side, &threads) || threads > std::numeric_limits<int>::max())
      return fmt::format("a block of {} × {} × {} threads", grid.block[0], grid.block[1], grid.block[2]);
  }
  for (const std::int64_t elements : grid.elements)
    if (elements < 1)
      return fmt::format("{} × {} × {} elements a block", grid.elements[0], grid.elements[1], grid.elements[2]);
  if (grid.block[2] > 64) return fmt::format("{} threads along z, and 64 are possible", grid.block[2]);
  const std::int64_t cluster = parsed_.cluster_blocks.evaluate(known),
                     smem = parsed_.dynamic_smem_bytes.evaluate(known);
  if (cluster < 1) return fmt::format("a cluster of {} blocks", cluster);
  if (smem < 0) return fmt::format("{} bytes of dynamic shared memory", smem);
  const auto limit = static_cast<std::int64_t>(facts.smem_bytes_per_block_optin);
  Reason no_space;
  if (smem > limit) no_space = {ReasonCode::device_smem, {static_cast<double>(smem), static_cast<double>(limit)}};
  Reason no_grid;
  if ((parsed_.spec.grid_stride ? 0 : grid.tiles[0]) > Geometry::kMostBlocks || grid.tiles[1] > kMostBlocksAside ||
      grid.tiles[2] > kMostBlocksAside)
    no_grid = fmt::format("a grid of {} × {} × {} blocks", grid.tiles[0], grid.tiles[1], grid.tiles[2]);
  return first_reason({check_blocks(facts, static_cast<int>(threads), static_cast<int>(cluster)), no_space, no_grid});
} catch (const Error& error) {  // an expression that has no value for this policy
  return error.what();
}

WorkShape SpecFamily::shape(const Problem& problem, const Policy& policy) const try {
  const ParsedSpec::Grid grid = parsed_.grid(problem.extents, policy);
  const ParsedSpec::Variables known = parsed_.variables(policy);
  std::int64_t input_bytes = 0;
  for (std::size_t i = 0; i < parsed_.spec.arguments.size(); ++i)
    if (parsed_.spec.arguments[i].is_array() && parsed_.spec.arguments[i].kind != KernelArgument::Kind::out)
      input_bytes += elements(problem, i) * static_cast<std::int64_t>(info(parsed_.spec.arguments[i].dtype).size_bytes);
  const std::int64_t tiles = std::max<std::int64_t>(1, grid.total());
  return {
      .block_threads = static_cast<int>(
          std::clamp<std::int64_t>(product_within_memory({grid.block[0], grid.block[1], grid.block[2]}).value_or(0), 0,
                                   std::numeric_limits<int>::max())),
      .dynamic_smem_bytes = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
          parsed_.dynamic_smem_bytes.evaluate(known), 0, std::numeric_limits<std::int32_t>::max())),
      .tiles = tiles,
      .bytes_in_flight_per_block = std::max<std::int64_t>(1, input_bytes / tiles),
      .dependent_launch = parsed_.dependent_launch.evaluate(known) != 0,
      .cluster_blocks = static_cast<int>(std::clamp<std::int64_t>(parsed_.cluster_blocks.evaluate(known), 1, 1 << 10)),
      .independent_blocks = true,
      .one_block_per_tile = !parsed_.spec.grid_stride};
} catch (const Error&) {  // likewise: the policy is not valid, and any shape will do
  return {};
}

std::int64_t SpecFamily::bytes_moved(const Problem& problem) const {
  std::int64_t bytes = 0;
  for (const BufferSpec& buffer : buffers(problem))
    bytes += static_cast<std::int64_t>(buffer.size_bytes()) * (buffer.is_updated ? 2 : 1);
  return bytes;
}

std::int64_t SpecFamily::elements(const Problem& problem, std::size_t argument) const {
  return parsed_.elements[argument].evaluate(parsed_.variables(parsed_.default_policy, problem.extents));
}

std::int64_t SpecFamily::index_bound(const Problem& problem, std::size_t argument) const {
  if (parsed_.spec.arguments[argument].below.empty()) return 0;
  return parsed_.below[argument].evaluate(parsed_.variables(parsed_.default_policy, problem.extents));
}

double SpecFamily::number(const Problem& problem, const Policy& policy, std::size_t argument) const {
  if (parsed_.spec.arguments[argument].kind == KernelArgument::Kind::scalar)
    return problem.scalars[parsed_.scalar_of[argument]].value_or(parsed_.spec.arguments[argument].value);
  return static_cast<double>(parsed_.elements[argument].evaluate(parsed_.variables(policy, problem.extents)));
}

void SpecFamily::push_arguments(const Problem& problem, const Policy& policy, std::span<void* const> buffers,
                                Arguments& arguments) const {
  for (std::size_t i = 0; i < parsed_.spec.arguments.size(); ++i) {
    const KernelArgument& argument = parsed_.spec.arguments[i];
    if (argument.is_array()) {
      arguments.push(buffers[parsed_.buffer_of[i]]);
      continue;
    }
    const double value = number(problem, policy, i);
    // A conversion to an integer that cannot hold the number is undefined.
    if (const std::string fault = scalar_fault(argument, value); !fault.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", parsed_.spec.name, fault));
    with_element_type(argument.dtype, [&]<class T>(T) { arguments.push(element_of<T>(value)); });
  }
}

void SpecFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void*,
                        LaunchList& launches) const {
  const ParsedSpec::Grid grid = parsed_.grid(problem.extents, candidate.policy);
  if (grid.total() == 0) return;
  const ParsedSpec::Variables known = parsed_.variables(candidate.policy);
  Launch& launch = launches.add();
  const std::int64_t cluster = parsed_.cluster_blocks.evaluate(known);
  const std::int64_t blocks =
      parsed_.spec.grid_stride ? std::min(candidate.geometry.max_blocks, grid.tiles[0]) : grid.tiles[0];
  launch.grid = {static_cast<unsigned>(divide_up(blocks, cluster) * cluster), static_cast<unsigned>(grid.tiles[1]),
                 static_cast<unsigned>(grid.tiles[2])};
  launch.block = {static_cast<unsigned>(grid.block[0]), static_cast<unsigned>(grid.block[1]),
                  static_cast<unsigned>(grid.block[2])};
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(parsed_.dynamic_smem_bytes.evaluate(known));
  launch.dependent_launch = parsed_.dependent_launch.evaluate(known) != 0;
  launch.cluster_blocks = static_cast<unsigned>(cluster);
  push_arguments(problem, candidate.policy, buffers, launch.arguments);
}

std::vector<BufferSpec> SpecFamily::buffers(const Problem& problem) const {
  std::vector<BufferSpec> buffers;
  for (const bool is_input : {true, false})
    for (std::size_t i = 0; i < parsed_.spec.arguments.size(); ++i) {
      const KernelArgument& argument = parsed_.spec.arguments[i];
      if (!argument.is_array() || is_input == (argument.kind == KernelArgument::Kind::out)) continue;
      buffers.push_back({.name = parsed_.spec.arguments[i].name,
                         .is_input = is_input,
                         .dtype = argument.dtype,
                         .elements = elements(problem, i),
                         .is_updated = argument.kind == KernelArgument::Kind::inout});
    }
  return buffers;
}

}  // namespace hone
