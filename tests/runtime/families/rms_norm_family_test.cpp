// The policies of rms_norm that are valid and promising, and the one that the model expects to be the fastest.
#include <gmock/gmock.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

#include <hone/rms_norm.h>
#include <hone/sdk/cuda_source.h>

#include "runtime/families/rms_norm/rms_norm_layout.h"
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
  EXPECT_THAT(grid_ways(norm_of(16, 3000017, DType::f32)),
              ElementsAre("combine=held ring_kib=216 row_groups=1", "combine=second_kernel"));
  EXPECT_THAT(grid_ways(rms_norm_problem({.dtype = DType::f32, .rows = 31, .columns = 1048577}, true, false)),
              ElementsAre("combine=held ring_kib=216 row_groups=2", "combine=pipeline", "combine=second_kernel"));
  EXPECT_THAT(grid_ways(norm_of(4, 1 << 24)),
              ElementsAre("combine=held ring_kib=216 row_groups=1", "combine=second_kernel")) << "no pipeline: L2";
  EXPECT_THAT(grid_ways(rms_norm_problem({.rows = 4, .columns = 1 << 24}, true, false)),
              ElementsAre("combine=second_kernel")) << "L2 does not keep weights";
  EXPECT_THAT(grid_ways(norm_of(1, 400000000)), ElementsAre("combine=second_kernel")) << "little of it would be held";
  EXPECT_THAT(grid_ways(norm_of(1 << 13, 1 << 13)), IsEmpty()) << "rows of 16 KiB";
  EXPECT_THAT(grid_ways(norm_of(1 << 20, 64)), IsEmpty());
}

/// 31 rows of 2^20 + 1 f16 and f32 take 51.5 and 106.9 µs by clusters that hold them, and 56 and 126 in a pipeline; 4
/// rows of 2^24 occupy no more than 4 blocks or clusters (H100, CUDA 13.0, 2026-11-26). Where a grid holds them in part
/// they take 117 and 261 µs, and 138 and 275 by two kernels (same GPU, 2026-11-27).
TEST(RmsNormFamily, TheModelExpectsManyBlocksToWinWhereOthersDoNotHoldRows) {
  const auto first_choice = [](const Problem& problem) {
    return problem.family->space().to_string(rank_policies(h100_facts(), problem).policies.front().policy);
  };
  using testing::StartsWith;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    EXPECT_THAT(first_choice(norm_of(16, 3000017, dtype)), StartsWith("scope=grid combine=held"));
    EXPECT_THAT(first_choice(norm_of(31, 1048577, dtype)), StartsWith("scope=cluster cluster_blocks=16"));
    EXPECT_THAT(first_choice(norm_of(4, 1 << 24, dtype)), StartsWith("scope=grid combine=held"));
    EXPECT_THAT(first_choice(norm_of(64, 1 << 20, dtype)), StartsWith("scope=cluster")) << "which reads a row once";
    EXPECT_THAT(first_choice(norm_of(1024, 1 << 16, dtype)), testing::Not(StartsWith("scope=grid")));
  }
}

/// A cluster that does not hold a row has few loads in flight: 4 rows of 2^24 f16 with a residual take clusters of 16
/// blocks 283 µs, a grid 232. 64 rows of 2^20 f16 take clusters of 128 threads 113 µs, of 512 threads 97 (H100, CUDA
/// 13.0, 2026-11-26).
TEST(RmsNormFamily, TheModelExpectsLittleOfClustersThatHaveFewThreadsOrDoNotHoldARow) {
  const auto first_choice = [](const RmsNormSpec& spec, bool weighted, bool adds) {
    const Problem problem = rms_norm_problem(spec, weighted, adds);
    return rank_policies(h100_facts(), problem).policies.front().policy.as<rms_norm::RmsNormPolicy>();
  };
  for (const DType dtype : {DType::f16, DType::f32})
    EXPECT_EQ(first_choice({.dtype = dtype, .rows = 4, .columns = 1 << 24}, false, true).scope, Scope::grid);
  EXPECT_EQ(first_choice({.rows = 8, .columns = 1 << 23}, false, false).scope, Scope::grid);
  EXPECT_EQ(first_choice({.rows = 64, .columns = 1 << 20}, false, false).block_threads, 512);
  EXPECT_GE(first_choice({.rows = 64, .columns = 1 << 20}, true, false).block_threads, 256);
}

TEST(RmsNormFamily, LongRowsThatBeginAnywhereAreReadInPacksOf16Bytes) {
  const auto stagings = [](const Problem& problem) {
    std::set<Staging> found;
    for (const Policy& policy : allowed_policies(problem, h100_facts())) {
      const auto of = policy.as<rms_norm::RmsNormPolicy>();
      if (of.scope == Scope::block) found.insert(of.staging);
    }
    return found;
  };
  EXPECT_EQ(stagings(norm_of(12289, 4097)), std::set{Staging::shifted});
  EXPECT_EQ(stagings(norm_of(12289, 4100)), (std::set{Staging::direct, Staging::shifted})) << "packs of 8 bytes";
  EXPECT_EQ(stagings(norm_of(65537, 1001)), (std::set{Staging::direct, Staging::shifted})) << "short rows";
  EXPECT_EQ(stagings(norm_of(12289, 4096)), std::set{Staging::direct}) << "aligned";
}

TEST(RmsNormFamily, BlocksHoldTheWeightsOfLongRowsThatBeginAnywhere) {
  const auto places = [](std::int64_t rows, std::int64_t columns, bool weighted) {
    const Problem problem =
        rms_norm_problem({.dtype = DType::f32, .rows = rows, .columns = columns}, weighted, false);
    std::set<rms_norm::Weights> found;
    for (const Policy& policy : allowed_policies(problem, h100_facts())) {
      const auto of = policy.as<rms_norm::RmsNormPolicy>();
      if (of.staging == Staging::shifted) found.insert(of.weights);
    }
    return found;
  };
  using rms_norm::Weights;
  EXPECT_EQ(places(1024, 50257, true), std::set{Weights::shared});
  EXPECT_EQ(places(16, 50257, true), std::set{Weights::registers}) << "a block takes one row";
  EXPECT_EQ(places(12289, 4001, true), std::set{Weights::registers});
  EXPECT_EQ(places(1024, 50257, false), std::set{Weights::registers}) << "no weights";
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

TEST(RmsNormFamily, AGridHoldsRowsThatTheSharedMemoryOfAllSmsHolds) {
  const auto why = [](const Problem& problem, std::string_view groups = "1") {
    const std::string text = "scope=grid combine=held ring_kib=216 row_groups=" + std::string(groups) +
                             " block_threads=1024 packs_per_thread=2 min_blocks=1";
    return rms_norm_family().is_valid(problem, norm_policy(text), h100_facts()).text();
  };
  EXPECT_EQ(why(norm_of(16, 3000017, DType::f32)), "");
  EXPECT_EQ(why(norm_of(64, 1 << 20), "2"), "");
  EXPECT_EQ(why(norm_of(10, 1 << 22, DType::f32)), "");
  EXPECT_THAT(why(norm_of(10, 1 << 22, DType::f32), "2"), Names("hold")) << "a row of each group";
  EXPECT_EQ(why(norm_of(4, 1 << 24)), "") << "in part";
  EXPECT_THAT(why(norm_of(4, 1 << 24), "2"), Names("hold"));
  EXPECT_THAT(why(rms_norm_problem({.rows = 64, .columns = 1 << 20}, true, true)), Names("residual"));
  EXPECT_THAT(why(norm_of(std::int64_t{1} << 40, 64)), Names("32 bits"));
}

TEST(RmsNormFamily, AGridThatHoldsRowsIsCooperativeAndHasABlockOnEachSm) {
  const Problem problem = norm_of(64, 1 << 20);
  const Policy policy = norm_policy(
      "scope=grid combine=held ring_kib=216 row_groups=2 block_threads=1024 packs_per_thread=2 min_blocks=1");
  const WorkShape shape = problem.family->shape(problem, policy);
  EXPECT_TRUE(shape.cooperative);
  EXPECT_EQ(shape.dynamic_smem_bytes, 216u * 1024);
  const std::vector<Geometry> grids = geometries(h100_facts(), shape, 1);
  ASSERT_EQ(grids.size(), 1u);
  EXPECT_EQ(grids[0].max_blocks, h100_facts().sm_count);
  LaunchList launches;
  problem.family->encode(problem, {policy, grids[0]}, std::array<void*, 2>{}, nullptr, launches);
  ASSERT_EQ(launches.end() - launches.begin(), 1);
  EXPECT_TRUE(launches.begin()->cooperative);
  EXPECT_EQ(launches.begin()->grid.x, static_cast<unsigned>(h100_facts().sm_count));
  const std::string emitted = cuda_source(problem, {policy, grids[0]}, "");
  EXPECT_THAT(emitted, Names("cudaLaunchAttributeCooperative"));
  EXPECT_THAT(emitted, testing::Not(Names("cudaLaunchAttributeProgrammaticStreamSerialization")));
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
