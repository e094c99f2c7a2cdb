#include "tuner/campaign/shard.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include <hone/tuned_reduce.h>

#include "tuner/campaign/campaign_file.h"
#include "tuner/campaign/campaign_plan.h"
#include "tuner/problems/problem_text.h"

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

WeightedProblem weighted_sum(std::int64_t n) { return {.problem = reduce_problem(ReduceOp::sum, DType::f32, n)}; }

std::vector<std::string> labels_of(const std::vector<WeightedProblem>& problems) {
  std::vector<std::string> found;
  for (const WeightedProblem& weighted : problems) found.push_back(problem_label(weighted.problem));
  return found;
}

double total_cost(const std::vector<WeightedProblem>& problems) {
  return std::accumulate(problems.begin(), problems.end(), 0.0, [](double sum, const WeightedProblem& weighted) {
    return sum + tuning_cost(weighted.problem);
  });
}

class ShardsOfPreset : public ::testing::TestWithParam<std::string_view> {
 protected:
  const std::vector<WeightedProblem> all_ = one_per_size_class(read_preset(GetParam()).problems);
};
INSTANTIATE_TEST_SUITE_P(, ShardsOfPreset, ::testing::Values("quick", "standard"));

TEST_P(ShardsOfPreset, TogetherHaveEachProblemOnce) {
  for (const std::size_t count : {1u, 2u, 7u, 8u, 64u}) {
    std::vector<std::string> together;
    for (std::size_t i = 1; i <= count; ++i)
      for (const std::string& label : labels_of(problems_of_shard(all_, {i, count}))) together.push_back(label);
    EXPECT_THAT(together, UnorderedElementsAreArray(labels_of(all_))) << count << " shards";
  }
}

TEST(Shard, OfStandardCostsAlike) {
  const std::vector<WeightedProblem> all = one_per_size_class(read_preset("standard").problems);
  for (const std::size_t count : {2u, 8u, 32u}) {
    const double fair_share = total_cost(all) / static_cast<double>(count);
    for (std::size_t i = 1; i <= count; ++i) {
      EXPECT_GT(total_cost(problems_of_shard(all, {i, count})), 0.8 * fair_share) << i << "/" << count;
      EXPECT_LT(total_cost(problems_of_shard(all, {i, count})), 1.2 * fair_share) << i << "/" << count;
    }
  }
}

TEST(Shard, KeepsSweepsWholeThatAreNoLargerThanItself) {
  std::vector<WeightedProblem> all;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min})
    for (const std::int64_t n : {1024, 4096, 65536}) all.push_back({.problem = reduce_problem(op, DType::f32, n)});
  for (std::size_t i = 1; i <= 3; ++i) {
    const std::vector<WeightedProblem> mine = problems_of_shard(all, {i, 3});
    ASSERT_EQ(mine.size(), 3u);
    EXPECT_TRUE(same_sweep(mine.front().problem, mine.back().problem));
  }
}

TEST(Shard, OfALargeSweepHasNeighbouringSizes) {
  std::vector<WeightedProblem> all;
  for (const std::int64_t n : {1 << 20, 1 << 10, 1 << 16, 1 << 12}) all.push_back(weighted_sum(n));
  const auto sizes = [&](std::size_t i) {
    std::vector<std::int64_t> found;
    for (const WeightedProblem& weighted : problems_of_shard(all, {i, 2})) found.push_back(weighted.problem.extents[0]);
    return found;
  };
  EXPECT_THAT(sizes(1), ElementsAre(1 << 20, 1 << 16));
  EXPECT_THAT(sizes(2), ElementsAre(1 << 10, 1 << 12));
}

TEST(Shard, CountsLargeProblemsForMore) {
  EXPECT_NEAR(tuning_cost(weighted_sum(std::int64_t{1} << 30).problem), 5, 0.01);
  EXPECT_NEAR(tuning_cost(weighted_sum(1024).problem), 1, 0.01);
}

TEST(Shard, MayHaveNothingToDo) {
  std::size_t problems = 0;
  const std::vector<WeightedProblem> all{weighted_sum(1024)};
  for (std::size_t i = 1; i <= 4; ++i) problems += problems_of_shard(all, {i, 4}).size();
  EXPECT_EQ(problems, 1u);
}

}  // namespace
}  // namespace hone::tuner
