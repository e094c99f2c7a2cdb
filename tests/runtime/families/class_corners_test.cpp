// What a family decides about a class holds for the members at its corners: their calls fit what was decided.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include <hone/copy.h>
#include <hone/fused_reduce.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>
#include <hone/softmax.h>
#include <hone/transpose.h>
#include <hone/tuned_reduce.h>

#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

std::vector<Problem> problems_of_every_family() {
  std::vector<Problem> problems;
  for (const std::int64_t n : {std::int64_t{100}, std::int64_t{1} << 20, std::int64_t{1} << 31}) {
    problems.push_back(reduce_problem(ReduceOp::sum, DType::f16, n));
    problems.push_back(reduce_problem(ReduceOp::argmax, DType::f64, n, 8));
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

/// As far as a family may be asked without a device.
void expect_fits(const Problem& corner, const ProblemClass& problem_class, const Policy& policy,
                 const DeviceFacts& facts) {
  const KernelFamily& family = *corner.family;
  const WorkShape shape = family.shape(corner, policy);
  const WorkShape typical = family.shape(problem_class.typical(), policy);
  const std::string what = to_string(corner) + " " + family.space().to_string(policy);
  EXPECT_EQ(shape.block_threads, typical.block_threads) << what;
  EXPECT_EQ(shape.cluster_blocks, typical.cluster_blocks) << what;
  EXPECT_EQ(shape.launches, typical.launches) << what;
  EXPECT_EQ(shape.one_block, typical.one_block) << what;
  EXPECT_LE(static_cast<int>(shape.dynamic_smem_bytes), facts.smem_bytes_per_block_optin) << what;

  const std::int64_t blocks = shape.one_block ? shape.cluster_blocks : std::int64_t{facts.sm_count} * 4;
  const Candidate candidate{policy, {blocks}};
  const std::array<void*, 3> buffers{};
  LaunchList launches;
  family.encode(corner, candidate, std::span(buffers).first(family.buffers(corner).size()), nullptr, launches);
  for (const Launch& launch : launches) {
    EXPECT_GE(launch.grid.x, 1u) << what;
    EXPECT_EQ(launch.grid.x % launch.cluster_blocks, 0u) << what;
    EXPECT_LE(launch.block.x, 1024u) << what;
  }
}

TEST(ClassCorners, EveryMemberIsLaunchedByEveryPolicyOfItsClass) {
  const DeviceFacts facts = h100_facts();
  for (const Problem& problem : problems_of_every_family()) {
    const ProblemClass problem_class = problem;
    std::size_t valid = 0;
    const std::vector<Problem> corners = problem_class.corners();
    for (const Policy& policy : problem.family->space().all()) {
      if (!problem.family->is_valid(problem_class, policy, facts).empty()) continue;
      ++valid;
      for (const Problem& corner : corners)
        if (problem.family->refuse(corner).empty()) expect_fits(corner, problem_class, policy, facts);
    }
    EXPECT_GT(valid, 0u) << to_string(problem);
  }
}

TEST(ClassCorners, SomethingIsLeftToMeasure) {
  for (const DeviceFacts& facts : {h100_facts(), host_like_facts()})
    for (const Problem& problem : problems_of_every_family()) {
      const auto is_left = [&](const Policy& policy) {
        return problem.family->is_valid(problem, policy, facts).empty() &&
               problem.family->prune(problem, policy, facts).empty();
      };
      const std::vector<Policy> all = problem.family->space().all();
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), is_left)) << to_string(problem);
    }
}

}  // namespace
}  // namespace hone
