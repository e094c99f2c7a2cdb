#include "tests/runtime/support/every_family.h"

#include <fmt/format.h>

#include <hone/copy_spec.h>
#include <hone/custom_reduction.h>
#include <hone/fused_reduction.h>
#include <hone/reduce_spec.h>
#include <hone/softmax_spec.h>
#include <hone/transpose_spec.h>

#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

/// What the architectures differ in: "Compute Capabilities" of the CUDA C++ Programming Guide 13.0.
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

std::vector<Problem> sample_problems() {
  return {
      reduce_problem(ReduceOp::sum, DType::f32, 1 << 24),
      reduce_problem(ReduceOp::mean_variance, DType::f16, std::int64_t{1} << 32, 2),
      fused().problem(DType::bf16, 1 << 22),
      cubes().problem(DType::i8, 1 << 20, 1),
      reduce_rows_problem({.op = ReduceOp::argmax}, {.rows = 4096, .columns = 4096}, 16),
      reduce_rows_problem({.dtype = DType::f16}, {.rows = 1 << 20, .columns = 7}, 2),
      reduce_columns_problem({.op = ReduceOp::logsumexp, .dtype = DType::bf16}, {.reduced = 4096, .inner = 5000}, 2),
      reduce_columns_problem({.dtype = DType::i32}, {.reduced = 1 << 20, .inner = 8}, 16),
      segmented_reduce_problem({}, DType::i32, 1 << 16, 1 << 22),
      segmented_reduce_problem({.op = ReduceOp::minmax, .dtype = DType::f64}, DType::i64, 1 << 10, 1 << 24),
      softmax_problem({.dtype = DType::f16}, SoftmaxShape::rows(4096, 8192), 16),
      log_softmax_problem({.dtype = DType::bf16, .result = DType::f32}, SoftmaxShape::rows(12289, 4097), 2),
      softmax_problem({}, SoftmaxShape::axis(2, 512, 4096), 16),
      transpose_problem({.element_bytes = 2, .rows = 4097, .columns = 4099}, 2, false),
      transpose_problem({.element_bytes = 4, .rows = 4096, .columns = 4096}, 16, true),
      copy_problem({.element_bytes = 4, .rows = 1000, .columns = 1001, .in_pitch = 1003}, 4)};
}

std::vector<Problem> problems_of_many_shapes() {
  std::vector<Problem> problems;
  for (const std::int64_t n : {std::int64_t{100}, std::int64_t{1} << 20, std::int64_t{1} << 31}) {
    problems.push_back(reduce_problem(ReduceOp::sum, DType::f16, n));
    problems.push_back(reduce_problem(ReduceOp::argmax, DType::f64, n, 8));
    problems.push_back(fused().problem(DType::f16, n));
    problems.push_back(fused().problem(DType::i64, n, 8));
    problems.push_back(cubes().problem(DType::bf16, n));
    problems.push_back(cubes().problem(DType::f32, n, 4));
  }
  constexpr std::array<std::array<std::int64_t, 2>, 7> kShapes{
      {{1 << 20, 7}, {1 << 14, 60}, {1000, 1000}, {31, 1 << 20}, {1, 1 << 26}, {3, 300007}, {70000, 1}}};
  for (const auto [rows, columns] : kShapes)
    for (const std::uint32_t alignment : {2u, 16u}) {
      problems.push_back(reduce_rows_problem({.dtype = DType::f16}, {.rows = rows, .columns = columns}, alignment));
      problems.push_back(reduce_columns_problem(
          {.op = ReduceOp::logsumexp}, {.outer = 3, .reduced = rows, .inner = columns}, alignment));
      problems.push_back(softmax_problem({.dtype = DType::bf16}, SoftmaxShape::rows(rows, columns), alignment));
      problems.push_back(softmax_problem({}, SoftmaxShape::axis(2, rows, columns), alignment));
      problems.push_back(segmented_reduce_problem({}, DType::i64, rows, rows * columns));
      problems.push_back(transpose_problem({.element_bytes = 2, .rows = rows, .columns = columns}, alignment, false));
      problems.push_back(copy_problem(
          {.element_bytes = 4, .rows = rows, .columns = columns, .in_pitch = columns + 5}, alignment));
    }
  return problems;
}

}  // namespace hone
