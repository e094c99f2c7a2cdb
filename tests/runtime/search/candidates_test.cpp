#include "runtime/search/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <hone/sdk/occupancy.h>
#include <hone/softmax.h>
#include <hone/tuned_reduce.h>

#include "runtime/families/reduce/reduce_layout.h"
#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

using testing::Each;
using testing::Field;

auto has_code(ReasonCode code) { return Field(&Reason::code, code); }

constexpr std::size_t kWorkspace = 128 * 1024;
using Finish = ReducePolicy::Finish;

Problem sum_f32(std::int64_t n) { return reduce_problem(ReduceOp::sum, DType::f32, n); }

Policy reduce(std::int32_t block_threads, std::int32_t unroll, Finish finish) {
  return Policy::of(ReducePolicy{.block_threads = block_threads, .unroll = unroll, .finish = finish});
}

/// The policy as a compiler might return it: with registers, and with the occupancy that follows.
CompiledPolicy compiled(const DeviceFacts& facts, const Problem& problem, const Policy& policy, int registers = 32) {
  const Resources resources{.registers = registers};
  const WorkShape shape = problem.family->shape(problem, policy);
  return {policy, resources, resident_blocks(facts, resources, shape.block_threads, shape.dynamic_smem_bytes)};
}

CandidateList list_one(const DeviceFacts& facts, const Problem& problem, const CompiledPolicy& policy,
                       std::size_t workspace = kWorkspace) {
  return list_candidates(facts, problem, std::span(&policy, 1), workspace);
}

std::vector<std::int64_t> grids(const std::vector<Trial>& trials) {
  std::vector<std::int64_t> result;
  for (const Trial& trial : trials) result.push_back(trial.candidate.geometry.max_blocks);
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::int64_t> grids(const DeviceFacts& facts, const WorkShape& shape, int resident, int clusters = 0) {
  std::vector<std::int64_t> result;
  for (const Geometry& geometry : geometries(facts, shape, resident, clusters)) result.push_back(geometry.max_blocks);
  return result;
}

TEST(Geometries, AreTheSameNumberOfBlocksForEverySm) {
  using Grids = std::vector<std::int64_t>;
  const WorkShape shape{.block_threads = 256};
  EXPECT_EQ(grids(h100_facts(), shape, 8), (Grids{132, 264, 528, 1056, 2112, 3168, 4224}));
  EXPECT_EQ(grids(h100_facts(), shape, 6), (Grids{132, 264, 528, 792, 1584, 2376, 3168}));
  EXPECT_EQ(grids(h100_facts(), shape, 1), (Grids{132, 264, 396, 528}));
}

TEST(Geometries, OfClustersThatWaitForOthersAreThoseThatAreResident) {
  const WorkShape shape{.block_threads = 256, .cluster_blocks = 8, .independent_blocks = false};
  EXPECT_EQ(grids(h100_facts(), shape, 1, 15), std::vector<std::int64_t>{120});
}

TEST(Geometries, OfOtherClustersAreWavesOfThoseThatAreResident) {
  const WorkShape shape{.block_threads = 256, .cluster_blocks = 8, .independent_blocks = true, .loads_ahead = true};
  EXPECT_EQ(grids(h100_facts(), shape, 1, 15), (std::vector<std::int64_t>{120, 240, 360, 480, 960}));
}

TEST(Geometries, OfBlocksThatLoadAheadAreEightWavesAtMost) {
  WorkShape shape{.block_threads = 256, .independent_blocks = true};
  EXPECT_EQ(grids(h100_facts(), shape, 1).back(), Geometry::kMostBlocks / 132 * 132);
  shape.loads_ahead = true;
  EXPECT_EQ(grids(h100_facts(), shape, 1), (std::vector<std::int64_t>{132, 264, 396, 528, 1056}));
}

TEST(Geometries, OfACooperativeGridAreOneBlockOnEachSm) {
  EXPECT_EQ(grids(h100_facts(), {.block_threads = 256, .tiles = 7, .cooperative = true}, 4),
            std::vector<std::int64_t>{132});
}

TEST(Geometries, NeverRepeat) {
  const WorkShape shape{.block_threads = 256};
  for (int resident = 1; resident <= 32; ++resident) {
    std::vector<std::int64_t> all = grids(h100_facts(), shape, resident);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end())) << resident;
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << resident;
    for (std::int64_t blocks : all) EXPECT_EQ(blocks % 132, 0);
  }
}

TEST(Geometries, OfTheHostGrowWithTheWorkAndAreOdd) {
  using Grids = std::vector<std::int64_t>;
  WorkShape shape{.block_threads = 128, .tiles = 1 << 14, .bytes_in_flight_per_block = 4096};  // 64 MiB
  DeviceFacts facts = two_core_host_facts();
  EXPECT_EQ(grids(facts, shape, 1), (Grids{2, 3, 7, 15, 31, 63, 127, 255}));
  facts.sm_count = 1;
  EXPECT_EQ(grids(facts, shape, 1), (Grids{1, 3, 7, 15, 31, 63, 127, 255}));
  shape.tiles = 100;
  EXPECT_EQ(grids(facts, shape, 1), Grids{1});
}

TEST(Geometries, APolicyOfOneBlockHasOne) {
  EXPECT_EQ(grids(h100_facts(), {.block_threads = 256, .one_block = true}, 8), std::vector<std::int64_t>{1});
}

TEST(Geometries, IndependentBlocksMayHaveFewTilesOrOneEach) {
  WorkShape shape{.block_threads = 256, .tiles = 1 << 24};
  EXPECT_LT(grids(h100_facts(), shape, 8).back(), shape.tiles);
  shape.independent_blocks = true;
  const std::vector<std::int64_t> all = grids(h100_facts(), shape, 8);
  EXPECT_GE(all.back(), shape.tiles);
  EXPECT_EQ(all[all.size() - 2], 8 * 8 * 132);
}

TEST(Candidates, TextbookOccupancyDecidesTheGrids) {
  // 1536 threads and 8 blocks per SM: 256 threads fit 6 times, 1024 once.
  DeviceFacts facts = textbook_facts();
  facts.sm_count = 10;
  const Problem problem = sum_f32(1 << 26);
  const CandidateList small = list_one(facts, problem, compiled(facts, problem, reduce(256, 4, Finish::last_block)));
  const CandidateList large = list_one(facts, problem, compiled(facts, problem, reduce(1024, 4, Finish::last_block)));
  std::vector<Trial> all = small.candidates;
  all.insert(all.end(), small.rejected.begin(), small.rejected.end());
  EXPECT_EQ(grids(all), (std::vector<std::int64_t>{10, 20, 40, 60, 120, 180, 240}));
  EXPECT_EQ(all.front().resident_blocks, 6);
  all = large.candidates;
  all.insert(all.end(), large.rejected.begin(), large.rejected.end());
  EXPECT_EQ(grids(all), (std::vector<std::int64_t>{10, 20, 30, 40}));
  EXPECT_EQ(all.front().resident_blocks, 1);
}

TEST(Candidates, AreOrderedByTheModel) {
  const DeviceFacts facts = h100_facts();
  const Problem problem = sum_f32(1 << 24);
  std::vector<CompiledPolicy> policies;
  for (const Policy& policy : problem.family->space().all()) policies.push_back(compiled(facts, problem, policy));
  const CandidateList list = list_candidates(facts, problem, policies, kWorkspace);
  EXPECT_GT(list.candidates.size(), 100u);
  EXPECT_TRUE(std::is_sorted(list.candidates.begin(), list.candidates.end(),
                             [](const Trial& a, const Trial& b) { return a.predicted_us < b.predicted_us; }));
  EXPECT_THAT(list.candidates, Each(Field(&Trial::reason, Reason())));
  EXPECT_THAT(list.candidates, Each(Field(&Trial::verdict, Verdict::ok)));
  EXPECT_THAT(list.rejected, Each(Field(&Trial::verdict, Verdict::rejected)));
  EXPECT_THAT(list.rejected, Each(Field(&Trial::reason, testing::Ne(Reason()))));
}

TEST(Candidates, WhatIsNotResidentIsRejected) {
  const Problem problem = sum_f32(1 << 20);
  const CandidateList list =
      list_one(h100_facts(), problem, {reduce(1024, 8, Finish::last_block), {.registers = 255}, 0});
  EXPECT_TRUE(list.candidates.empty());
  ASSERT_EQ(list.rejected.size(), 1u);
  EXPECT_EQ(list.rejected[0].reason, Reason(ReasonCode::not_resident, {1024, 255, 0}));
}

TEST(Candidates, WhatSpillsIsRejected) {
  const Problem problem = sum_f32(1 << 20);
  CompiledPolicy policy = compiled(h100_facts(), problem, reduce(256, 4, Finish::last_block));
  policy.resources.local_bytes = 400;
  const CandidateList list = list_one(h100_facts(), problem, policy);
  EXPECT_TRUE(list.candidates.empty());
  EXPECT_EQ(list.rejected.front().reason, Reason(ReasonCode::spills, {400}));
}

TEST(Candidates, AnArrayInLocalMemoryIsNotSpilled) {
  const Problem problem =
      softmax_problem({.numerics = Numerics::reproducible}, SoftmaxShape::columns(256, 65536));
  const Policy four_packs = problem.family->space()
                                .parse("scope=block lanes=16 block_threads=256 packs_per_thread=4 staging=direct "
                                       "min_blocks=unset")
                                .value();
  CompiledPolicy policy = compiled(h100_facts(), problem, four_packs, 128);
  policy.resources.local_bytes = 96;
  EXPECT_FALSE(list_one(h100_facts(), problem, policy).candidates.empty());
  policy.resources.local_bytes = 208;
  EXPECT_TRUE(list_one(h100_facts(), problem, policy).candidates.empty());
}

TEST(Candidates, HaveNoMoreBytesInFlightThanTheirCompiledCode) {
  const Problem problem = sum_f32(1 << 20);
  CompiledPolicy policy = compiled(h100_facts(), problem, reduce(256, 8, Finish::last_block));
  const Trial hoped = list_one(h100_facts(), problem, policy).candidates.at(0);
  for (const int more : {8 * 16, 16 * 16}) {  // a kernel that loads the next tile early has twice as many
    policy.thread_bytes_in_flight = more;
    EXPECT_EQ(list_one(h100_facts(), problem, policy).candidates.at(0).bytes_in_flight_per_sm,
              hoped.bytes_in_flight_per_sm);
  }
  policy.thread_bytes_in_flight = 16;  // ptxas reused the registers: one load waits for the other
  for (const Trial& trial : list_one(h100_facts(), problem, policy).candidates) {
    EXPECT_GT(trial.predicted_us, hoped.predicted_us);
    if (trial.candidate.geometry == hoped.candidate.geometry) {
      EXPECT_EQ(trial.bytes_in_flight_per_sm, hoped.bytes_in_flight_per_sm / 8);
    }
  }
}

TEST(Candidates, OnlyThreadsThatLoadHaveBytesInFlight) {
  const ReduceSpec spec{.op = ReduceOp::sum, .dtype = DType::f16, .numerics = Numerics::reproducible};
  const Problem problem = reduce_problem(spec, 4096);  // 4 chunks, for 4 of 16 warps
  CompiledPolicy policy = compiled(h100_facts(), problem, reduce(512, 1, Finish::one_block));
  policy.thread_bytes_in_flight = 16;  // of the 64 of a lane's share of a chunk
  EXPECT_EQ(shape_of(problem, policy).bytes_in_flight_per_block, 4 * 32 * 16);
}

TEST(Candidates, WhatNeedsTooMuchWorkspaceIsRejected) {
  const Problem problem = sum_f32(1 << 26);
  const CandidateList list = list_one(
      h100_facts(), problem, compiled(h100_facts(), problem, reduce(256, 4, Finish::last_block)), 128 + 4 * 600);
  EXPECT_THAT(grids(list.candidates), testing::Not(testing::IsEmpty()));
  for (std::int64_t blocks : grids(list.candidates)) EXPECT_LE(blocks, 600);
  EXPECT_THAT(list.rejected, testing::Contains(Field(&Trial::reason, has_code(ReasonCode::workspace))));
}

TEST(Candidates, WhatCannotSaturateMemoryIsRejectedOnceTheWorkIsLarge) {
  const Policy narrow = reduce(128, 1, Finish::last_block);  // 2048 bytes a block
  const Problem large = sum_f32(1 << 26);
  const CandidateList list = list_one(h100_facts(), large, compiled(h100_facts(), large, narrow));
  EXPECT_THAT(list.rejected,
              testing::Contains(Field(&Trial::reason, has_code(ReasonCode::bytes_in_flight))));
  for (const Trial& trial : list.candidates) EXPECT_GE(trial.bytes_in_flight_per_sm, 8 << 10);

  const Problem small = sum_f32(1 << 14);
  const CandidateList of_small = list_one(h100_facts(), small, compiled(h100_facts(), small, narrow));
  EXPECT_FALSE(of_small.candidates.empty());
}

TEST(Candidates, OneBlockServesSmallWorkAlone) {
  const Policy one_block = reduce(1024, 4, Finish::one_block);
  for (std::int64_t n : {0, 1, 1000, 65536}) {
    const CandidateList list = list_one(h100_facts(), sum_f32(n), compiled(h100_facts(), sum_f32(n), one_block));
    EXPECT_EQ(grids(list.candidates), std::vector<std::int64_t>{1}) << n;
  }
  const Problem large = sum_f32(1 << 26);
  const CandidateList list = list_one(h100_facts(), large, compiled(h100_facts(), large, one_block));
  EXPECT_TRUE(list.candidates.empty());
  EXPECT_EQ(list.rejected.front().reason, Reason(ReasonCode::one_block));
}

TEST(Candidates, OneBlockServesSmallWorkOnTheHostToo) {
  const DeviceFacts facts = two_core_host_facts();
  for (std::int64_t n : {0, 1, 1000}) {
    const CandidateList list =
        list_one(facts, sum_f32(n), compiled(facts, sum_f32(n), reduce(128, 1, Finish::one_block)));
    EXPECT_EQ(grids(list.candidates), std::vector<std::int64_t>{1}) << n;
  }
}

TEST(Candidates, AGridThatCoversTheWorkMakesLargerOnesUseless) {
  const Policy policy = reduce(256, 1, Finish::last_block);
  const Problem problem = sum_f32(1024 * 200);  // 200 tiles
  const CandidateList list = list_one(h100_facts(), problem, compiled(h100_facts(), problem, policy));
  EXPECT_EQ(grids(list.candidates), (std::vector<std::int64_t>{132, 264}));
  EXPECT_THAT(list.rejected, Each(Field(&Trial::reason, Reason(ReasonCode::covers_all_work, {264}))));
}

TEST(Candidates, EveryPolicyLeavesARecord) {
  const DeviceFacts facts = h100_facts();
  for (std::int64_t n : {0, 1, 5000, 1 << 26}) {
    const Problem problem = sum_f32(n);
    std::vector<CompiledPolicy> policies;
    for (const Policy& policy : problem.family->space().all()) policies.push_back(compiled(facts, problem, policy));
    const CandidateList list = list_candidates(facts, problem, policies, kWorkspace);
    for (const CompiledPolicy& policy : policies) {
      const auto is_of_it = [&](const Trial& trial) { return trial.candidate.policy == policy.policy; };
      EXPECT_GT(std::count_if(list.candidates.begin(), list.candidates.end(), is_of_it) +
                    std::count_if(list.rejected.begin(), list.rejected.end(), is_of_it),
                0);
    }
    EXPECT_FALSE(list.candidates.empty()) << n;
  }
}

TEST(Ranking, HoldsEveryPolicyOnce) {
  const Problem problem = reduce_problem(ReduceOp::sum, DType::f64, 1 << 20);
  const PolicyRanking ranking = rank_policies(h100_facts(), problem);
  std::size_t count = ranking.policies.size();
  std::vector<Reason> reasons;
  for (const Trial& trial : ranking.rejected) {
    count += static_cast<std::size_t>(trial.policies);
    EXPECT_THAT(reasons, testing::Not(testing::Contains(trial.reason))) << "has two records";
    reasons.push_back(trial.reason);
  }
  EXPECT_EQ(count, problem.family->space().all().size());
  EXPECT_FALSE(ranking.rejected.empty());
  EXPECT_TRUE(std::is_sorted(ranking.policies.begin(), ranking.policies.end(),
                             [](const auto& a, const auto& b) { return is_faster(a.prediction, b.prediction); }));
}

TEST(Ranking, PutsOneBlockFirstForSmallWorkAndWholeWavesFirstForLarge) {
  const auto finish = [](const RankedPolicy& ranked) { return ranked.policy.as<ReducePolicy>().finish; };
  for (const DeviceFacts& facts : {h100_facts(), gpu_of_82_sms(), two_core_host_facts()}) {
    for (std::int64_t n : {0, 1, 1000})
      EXPECT_EQ(finish(rank_policies(facts, sum_f32(n)).policies.front()), Finish::one_block) << n;
    EXPECT_NE(finish(rank_policies(facts, sum_f32(1 << 26)).policies.front()), Finish::one_block);
  }
}

TEST(Ranking, RejectsBlocksThatTheDeviceCannotHold) {
  DeviceFacts facts = h100_facts();
  facts.max_threads_per_block = 256;
  for (const RankedPolicy& ranked : rank_policies(facts, sum_f32(1000)).policies)
    EXPECT_LE(ranked.policy.as<ReducePolicy>().block_threads, 256);
}

}  // namespace
}  // namespace hone
