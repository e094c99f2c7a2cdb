#include "tests/runtime/support/every_family.h"

#include <fmt/format.h>

#include <hone/copy_spec.h>
#include <hone/custom_reduction.h>
#include <hone/fused_reduction.h>
#include <hone/kernel_family.h>

#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

/// The differences of the architectures: "Compute Capabilities" of the CUDA C++ Programming Guide 13.0.
struct Architecture {
  int compute_capability;
  int smem_bytes_per_sm;
  int smem_bytes_per_block_optin;
  int max_cluster_blocks;
};
constexpr std::array<Architecture, kComputeCapabilities.size()> kArchitectures{{{75, 65536, 65536, 0},
                                                                                {80, 167936, 166912, 0},
                                                                                {86, 102400, 101376, 0},
                                                                                {89, 102400, 101376, 0},
                                                                                {90, 233472, 232448, 16},
                                                                                {100, 233472, 232448, 16},
                                                                                {120, 102400, 101376, 8}}};

const FusedReduction& fused() {
  static const FusedReduction reductions{ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::mean};
  return reductions;
}

const CustomReduction& cubes() {
  static const CustomReduction reduction(
      {.name = "cubes", .map = "Acc(x) * x * x", .combine = "a + b", .identity = "0"}, DType::f64);
  return reduction;
}

}  // namespace

DeviceFacts facts_of_architecture(int compute_capability) {
  DeviceFacts facts = h100_facts();
  for (const Architecture& one : kArchitectures) {
    if (one.compute_capability != compute_capability) continue;
    facts.compute_capability = compute_capability;
    facts.architecture = fmt::format("sm_{}", compute_capability);
    facts.smem_bytes_per_sm = one.smem_bytes_per_sm;
    facts.smem_bytes_per_block_optin = one.smem_bytes_per_block_optin;
    facts.max_cluster_blocks = one.max_cluster_blocks;
    facts.has_dependent_launch = compute_capability >= 90;
  }
  return facts;
}

std::optional<Problem> problem_of_family(const FamilyRow& row, const SampleShape& shape, std::size_t turn) {
  const KernelFamily& family = row.family();
  const std::size_t extents = family.extent_names().size(), operations = family.operations().size();
  Problem problem{.family = &family, .alignment = shape.alignment};
  if (extents == 1) problem.extents = {shape.rows * shape.columns, 1, 1};
  else if (extents == 2) problem.extents = {shape.rows, shape.columns, 1};
  else problem.extents = {2, shape.rows, shape.columns};
  for (std::size_t i = 0; i < operations * kDTypes.size(); ++i) {
    const std::size_t choice = turn * 7 + i;
    problem.operation = static_cast<std::uint8_t>(choice % operations);
    problem.dtype = kDTypes[choice % kDTypes.size()].dtype;
    if (info(problem.dtype).size_bytes > shape.alignment) continue;
    const Problem called = row.as_called ? row.as_called(problem) : problem;
    if (called.family->refuse(called).empty()) return called;
  }
  return std::nullopt;
}

std::vector<Problem> problems_of_every_family(const std::vector<SampleShape>& shapes) {
  std::vector<Problem> problems;
  std::size_t turn = 0;
  for (const FamilyRow& row : built_in_families())
    for (const SampleShape& shape : shapes)
      if (const auto problem = problem_of_family(row, shape, turn++)) problems.push_back(*problem);
  return problems;
}

std::vector<Problem> sample_problems() {
  std::vector<Problem> problems =
      problems_of_every_family({{4096, 8192, 16}, {4097, 4099, 2}, {2, std::int64_t{1} << 32, 16}});
  problems.push_back(fused().problem(DType::bf16, 1 << 22));
  problems.push_back(cubes().problem(DType::i8, 1 << 20, 1));
  return problems;
}

std::vector<Problem> problems_of_many_shapes() {
  std::vector<SampleShape> shapes;
  for (const std::uint32_t alignment : {2u, 8u, 16u})
    for (const auto [rows, columns] : {std::array{1 << 20, 7}, {1 << 14, 60}, {1000, 1000}, {31, 1 << 20},
                                       {1, 1 << 26}, {3, 300007}, {70000, 1}, {1 << 16, 1 << 15}, {100, 1}})
      shapes.push_back({rows, columns, alignment});
  std::vector<Problem> problems = problems_of_every_family(shapes);
  for (const std::int64_t n : {std::int64_t{100}, std::int64_t{1} << 20, std::int64_t{1} << 31}) {
    problems.push_back(fused().problem(DType::f16, n));
    problems.push_back(fused().problem(DType::i64, n, 8));
    problems.push_back(cubes().problem(DType::bf16, n));
    problems.push_back(cubes().problem(DType::f32, n, 4));
    problems.push_back(copy_problem({.element_bytes = 4, .rows = 31, .columns = n, .in_pitch = n + 5}, 4));
  }
  return problems;
}

}  // namespace hone
