// A family's decisions about a class hold for the members at its corners: their calls fit what was decided.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include <hone/kernel_family.h>

#include "tests/runtime/support/every_family.h"
#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

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
  const std::array<void*, 8> buffers{};
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
  for (const Problem& problem : problems_of_many_shapes()) {
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
    for (const Problem& problem : problems_of_many_shapes()) {
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
