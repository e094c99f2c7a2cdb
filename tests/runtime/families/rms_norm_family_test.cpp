// The policies of rms_norm that are valid and promising, and the one that the model expects to be the fastest.
#include <gmock/gmock.h>

#include <set>
#include <string>
#include <string_view>

#include <hone/rms_norm.h>

#include "runtime/search/candidates.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

Problem norm_of(std::int64_t rows, std::int64_t columns, DType dtype = DType::f16) {
  return rms_norm_problem({.dtype = dtype, .rows = rows, .columns = columns}, false, false);
}

Policy norm_policy(std::string_view text) {
  std::string fault;
  const auto policy = rms_norm_family().space().parse(text, &fault);
  EXPECT_TRUE(policy) << fault;
  return policy.value();
}

/// How the blocks of a grid combine their results, in the policies that have one.
std::set<std::string> grid_ways(const Problem& problem) {
  constexpr std::string_view kGrid = "scope=grid ";
  std::set<std::string> found;
  for (const Policy& policy : allowed_policies(problem, h100_facts())) {
    const std::string text = problem.family->space().to_string(policy);
    if (text.starts_with(kGrid)) found.insert(text.substr(kGrid.size(), text.find(" block_threads") - kGrid.size()));
  }
  return found;
}

TEST(RmsNormFamily, LongRowsAreSharedByManyBlocks) {
  using testing::ElementsAre, testing::IsEmpty;
  EXPECT_THAT(grid_ways(norm_of(31, 1048577)), ElementsAre("combine=pipeline", "combine=second_kernel"));
  EXPECT_THAT(grid_ways(norm_of(64, 1 << 20, DType::f32)), ElementsAre("combine=pipeline", "combine=second_kernel"));
  EXPECT_THAT(grid_ways(norm_of(4, 1 << 24)), ElementsAre("combine=second_kernel")) << "rows are more than L2 keeps";
  EXPECT_THAT(grid_ways(norm_of(1, 1 << 26)), ElementsAre("combine=second_kernel"));
  EXPECT_THAT(grid_ways(norm_of(1 << 13, 1 << 13)), IsEmpty()) << "rows of 16 KiB";
  EXPECT_THAT(grid_ways(norm_of(1 << 20, 64)), IsEmpty());
}

/// 31 rows of 2^20 + 1 f16 took 181.7 µs by clusters whose threads load single elements, 24 % of the speed of a copy;
/// 4 rows of 2^24 occupy no more than 4 blocks or clusters (H100, CUDA 13.0, 2026-11-26).
TEST(RmsNormFamily, TheModelExpectsManyBlocksToWinWhereOthersReadSingleElementsOrAreFew) {
  const auto first_choice = [](const Problem& problem) {
    return problem.family->space().to_string(rank_policies(h100_facts(), problem).policies.front().policy);
  };
  using testing::StartsWith;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    EXPECT_THAT(first_choice(norm_of(31, 1048577, dtype)), StartsWith("scope=grid combine=pipeline"));
    EXPECT_THAT(first_choice(norm_of(4, 1 << 24, dtype)), StartsWith("scope=grid combine=second_kernel"));
    EXPECT_THAT(first_choice(norm_of(64, 1 << 20, dtype)), StartsWith("scope=cluster")) << "which reads a row once";
    EXPECT_THAT(first_choice(norm_of(1024, 1 << 16, dtype)), testing::Not(StartsWith("scope=grid")));
  }
}

TEST(RmsNormFamily, ChunksNeedTheSameWorkspaceForAnyNumberOfRows) {
  for (const std::string_view combine : {"pipeline", "second_kernel"}) {
    const Candidate candidate{
        norm_policy("scope=grid combine=" + std::string(combine) +
                    " block_threads=128 packs_per_thread=2 min_blocks=1"),
        {2000}};
    const std::size_t few = rms_norm_family().workspace_bytes(norm_of(40, 1 << 21), candidate);
    EXPECT_EQ(few, rms_norm_family().workspace_bytes(norm_of(4000, 1 << 21), candidate));
    EXPECT_GT(few, 0u);
    EXPECT_LE(few, kWorkspaceBytes);
  }
  const Candidate block{norm_policy("scope=block block_threads=256 staging=direct packs_per_thread=8 min_blocks=1"),
                        {264}};
  EXPECT_EQ(rms_norm_family().workspace_bytes(norm_of(40, 1 << 21), block), 0u);
}

TEST(RmsNormFamily, MoreChunksThanAreCountedAreRefused) {
  const auto why = [](std::int64_t rows, std::int64_t columns, std::string_view combine) {
    const Policy policy =
        norm_policy("scope=grid combine=" + std::string(combine) +
                    " block_threads=256 packs_per_thread=8 min_blocks=1");
    return rms_norm_family().is_valid(norm_of(rows, columns), policy, h100_facts()).text();
  };
  EXPECT_EQ(why(1 << 28, 16, "pipeline"), "");
  EXPECT_THAT(why(std::int64_t{1} << 31, 16, "pipeline"), Names("32 bits"));
  EXPECT_THAT(why(1 << 25, 1 << 20, "pipeline"), Names("32 bits"));
  EXPECT_EQ(why(1 << 17, 16, "second_kernel"), "");
  EXPECT_THAT(why(1 << 19, 16, "second_kernel"), Names("workspace"));
}

}  // namespace
}  // namespace hone
