#include "tuner/winners/parameter_effects.h"

#include <gmock/gmock.h>

#include "tests/tuner/report/report_fixture.h"

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParameterEffects, AValueStandsForItsFastestCandidate) {
  const cache::Publication sum = tuned_sum(20);  // unroll 4, 2, 1: 0, 20, 30 % more; 256 threads: 3 % more
  const std::vector<ParameterEffect> effects = parameter_effects(*sum.tuning);
  ASSERT_GE(effects.size(), 2U);
  EXPECT_EQ(effects[0].name, "unroll");
  EXPECT_EQ(effects[0].values.front().value, "4");
  EXPECT_EQ(effects[0].values.back().value, "1");
  EXPECT_NEAR(effects[0].next(), 0.2, 1e-9);
  EXPECT_NEAR(effects[0].worst(), 0.3, 1e-9);
  EXPECT_EQ(effects[1].name, "block_threads");
  EXPECT_NEAR(effects[1].worst(), 0.03, 1e-9);
  EXPECT_EQ(effects.back().worst(), 0) << "a single value costs nothing";
}

TEST(ParameterEffects, WithoutMeasuredCandidatesThereAreNone) {
  cache::TuningRecord tuning;
  EXPECT_THAT(parameter_effects(tuning), IsEmpty());
  cache::TrialRecord& trial = tuning.trials.emplace_back();
  trial.candidate.policy = "no parameters at all";
  trial.median_us = 1;
  trial.verdict = "ok";
  EXPECT_THAT(parameter_effects(tuning), IsEmpty());
}

const UntriedValues* find(const std::vector<UntriedValues>& untried, std::string_view parameter,
                          const std::string& value) {
  for (const UntriedValues& each : untried)
    if (each.parameter == parameter && std::ranges::find(each.values, value) != each.values.end()) return &each;
  return nullptr;
}

TEST(UntriedValues, HaveTheReasonOfTheirTrialsOrOfTheFamily) {
  const cache::Publication sum = tuned_sum(20);
  const std::vector<UntriedValues> untried = untried_values(stored_winner(sum), *sum.tuning);
  ASSERT_NE(find(untried, "block_threads", "1024"), nullptr);
  EXPECT_NE(find(untried, "block_threads", "1024")->reason, "");
  ASSERT_NE(find(untried, "vector_bytes", "32"), nullptr) << "sm_90 has no loads of 32 bytes";
  EXPECT_NE(find(untried, "vector_bytes", "32")->reason, "");
  EXPECT_EQ(find(untried, "unroll", "4"), nullptr);
  EXPECT_EQ(find(untried, "block_threads", "512"), nullptr);
}

TEST(UntriedValues, OfAScopeThatTheWinnerLacksAreThoseOfWholePolicies) {
  cache::Publication rows = tuned_sum(22);
  rows.key.problem.family = "reduce_rows";
  rows.key.problem.sizes = {cache::RangeRecord{60, 70}, cache::RangeRecord{60000, 70000}, cache::RangeRecord{1, 1}};
  rows.winner.tuned_extents = {64, 65536, 1};
  rows.winner.candidate.policy = "block_threads=512 scope=block unroll=4 tail=warp min_blocks=1";
  rows.tuning->trials.resize(1);
  rows.tuning->trials[0].candidate.policy = rows.winner.candidate.policy;
  const std::vector<UntriedValues> untried = untried_values(stored_winner(rows), *rows.tuning);
  const UntriedValues* warp = find(untried, "scope", "warp");
  ASSERT_NE(warp, nullptr);
  EXPECT_THAT(warp->reason, ::testing::HasSubstr("too many packs for a warp"))
      << "which is said of 32 threads alone, not of a policy without threads";
  EXPECT_EQ(find(untried, "scope", "block"), nullptr);
  EXPECT_EQ(find(untried, "unroll", "4"), nullptr);
}

TEST(UntriedValues, OfAnUnknownFamilyAreThoseOfTheTrials) {
  cache::Publication own = tuned_sum(20);
  own.key.problem.family = "own";
  const std::vector<UntriedValues> untried = untried_values(stored_winner(own), *own.tuning);
  ASSERT_EQ(untried.size(), 2U);
  EXPECT_THAT(untried[0].values, ElementsAre("1024"));
  EXPECT_THAT(untried[1].values, ElementsAre("8"));
}

}  // namespace
}  // namespace hone::tuner
