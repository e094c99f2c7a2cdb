// A family's decisions about a class hold for the members at its corners: their calls fit what was decided.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <hone/kernel_family.h>
#include <hone/sdk/family_table.h>

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

/// Sizes that no GPU has memory for are refused, or launched as any others; nothing between fails in a launch.
TEST(ClassCorners, ExtremeExtentsAreRefusedOrLaunched) {
  constexpr std::int64_t kOne = 1, kMost = std::numeric_limits<std::int64_t>::max(), kBlocks = 132 * 4;
  const DeviceFacts facts = h100_facts();
  std::size_t turn = 0;
  int refused = 0, launched = 0;
  for (const FamilyRow& row : built_in_families()) {
    const Problem usual = problem_of_family(row, {16, 16, 16}, turn++).value();
    const std::size_t count = usual.family->extent_names().size();
    for (const std::int64_t large : {kOne << 31, kOne << 40, kOne << 53, kOne << 57, kOne << 60, kMost})
      for (const std::int64_t other : {kOne, std::int64_t{100}, kOne << 20, kOne << 31, kMost})
        for (std::size_t axis = 0; axis < count; ++axis) {
          Problem problem = usual;
          problem.alignment = static_cast<std::uint32_t>(info(problem.dtype).size_bytes);
          problem.pitches = {};
          for (std::size_t i = 0; i < count; ++i) problem.extents[i] = i == axis ? large : other;
          const std::string refusal = refusal_of(problem);
          if (!refusal.empty()) {
            EXPECT_THAT(refusal, testing::AnyOf(testing::HasSubstr("no memory holds"), testing::HasSubstr("i32")))
                << to_string(problem);
            ++refused;
            continue;
          }
          const ProblemClass problem_class = problem;
          std::size_t valid = 0;
          for (const Policy& policy : problem.family->space().all()) {
            const Candidate candidate{policy, {kBlocks}};
            if (!problem.family->is_valid(problem_class, policy, facts).empty() ||
                problem.family->workspace_bytes(problem_class, candidate) > kWorkspaceBytes)
              continue;
            ++valid;
            expect_fits(problem, problem_class, policy, facts);
          }
          EXPECT_GT(valid, 0u) << to_string(problem);
          ++launched;
        }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(launched, 100);
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
