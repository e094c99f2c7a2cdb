#include "tuner/explain/explanation.h"

#include <gmock/gmock.h>

#include <hone/candidate.h>

#include "tests/support/names.h"

namespace hone::tuner {
namespace {

using test::Names;

cache::TrialRecord trial(const std::string& policy, double predicted_us, double median_us, int samples,
                         std::int64_t blocks = 132) {
  cache::TrialRecord record;
  record.candidate.policy = policy;
  record.candidate.max_blocks = blocks;
  record.candidate.block_threads = 256;
  record.candidate.registers = 32;
  record.predicted_us = predicted_us;
  record.median_us = median_us;
  record.spread_us = 0.05;
  record.samples = samples;
  record.verdict = median_us > 0 ? "ok" : "rejected";
  return record;
}

class ExplanationTest : public ::testing::Test {
 protected:
  ExplanationTest() {
    tuning_.trials = {trial("winner", 5, 4, 64),         trial("larger", 4, 4.02, 64, 528),
                      trial("slower", 3, 4.4, 64),       trial("dropped", 2, 6, 8),
                      trial("unmeasured", 9, 0, 0),      trial("wrong", 1, 3, 8)};
    tuning_.trials[3].is_default = true;
    tuning_.trials[4].reason = "not measured: predicted slower";
    tuning_.trials[5].verdict = "wrong";
    tuning_.trials[5].reason = "expected 3, found 4";
    winner_.candidate = tuning_.trials[0].candidate;
    winner_.tuned = true;
    winner_.median_us = 4;
  }

  cache::TuningRecord tuning_;
  cache::WinnerRecord winner_;
};

TEST_F(ExplanationTest, EveryCandidateHasAFate) {
  const Explanation explanation = explain(winner_, tuning_);
  ASSERT_EQ(explanation.candidates.size(), 6U);
  const auto fate = [&](std::size_t i) { return explanation.candidates[i].fate; };
  EXPECT_EQ(fate(0), Fate::won);
  EXPECT_EQ(fate(1), Fate::tied);
  EXPECT_EQ(fate(2), Fate::beaten);
  EXPECT_EQ(fate(3), Fate::beaten);
  EXPECT_EQ(fate(4), Fate::rejected);
  EXPECT_EQ(fate(5), Fate::wrong);
  EXPECT_THAT(explanation.candidates[1].why, Names("4 times", "threads"));
  EXPECT_THAT(explanation.candidates[2].why, Names("side by side"));
  EXPECT_THAT(explanation.candidates[3].why, Names("dropped", "8 samples"));
  EXPECT_THAT(explanation.candidates[3].why, ::testing::Not(Names("median")));
  EXPECT_EQ(explanation.candidates[4].why, "not measured: predicted slower");
  EXPECT_NEAR(explanation.candidates[3].gap, 0.5, 1e-9);
}

TEST_F(ExplanationTest, OneWithALowerMedianMayLoseSideBySide) {
  tuning_.trials[2].median_us = 3.6;
  EXPECT_THAT(explain(winner_, tuning_).candidates[2].why, Names("side by side", "median is lower"));
  tuning_.trials[2].samples = 4;
  EXPECT_THAT(explain(winner_, tuning_).candidates[2].why, Names("4 samples", "median is lower"));
}

TEST_F(ExplanationTest, ABlockForEveryTileIsNoNumberOfBlocks) {
  tuning_.trials[1].candidate.max_blocks = Geometry::kMostBlocks / 132 * 132;
  EXPECT_EQ(explain(winner_, tuning_).candidates[1].why, "as fast as can be told, but with a block for every tile");
}

TEST_F(ExplanationTest, TheGainIsOverTheDefaultAndTheRunnerUp) {
  const Explanation explanation = explain(winner_, tuning_);
  ASSERT_TRUE(explanation.standard && explanation.runner_up && explanation.winner);
  EXPECT_EQ(explanation.standard->candidate.policy, "dropped");
  EXPECT_EQ(explanation.runner_up->candidate.policy, "larger");
  EXPECT_EQ(explanation.measured, 4);
  EXPECT_EQ(explanation.place_of_winner, 4U);
}

TEST_F(ExplanationTest, TheFirstChoiceStandsBeforeAWinnerOfTheSamePrediction) {
  for (cache::TrialRecord& record : tuning_.trials) record.predicted_us = 5;
  EXPECT_EQ(explain(winner_, tuning_).place_of_winner, 1U);
  std::swap(tuning_.trials[0].is_default, tuning_.trials[3].is_default);
  EXPECT_EQ(explain(winner_, tuning_).place_of_winner, 0U);
}

TEST_F(ExplanationTest, TheModelsRanksAreComparedWithTheMeasuredOnes) {
  EXPECT_NEAR(explain(winner_, tuning_).rank_correlation, -1, 1e-9);
  for (cache::TrialRecord& record : tuning_.trials) record.predicted_us = 2 * record.median_us;
  EXPECT_NEAR(explain(winner_, tuning_).rank_correlation, 1, 1e-9);
}

TEST_F(ExplanationTest, TheFasterOneThatGaveWayIsNamed) {
  tuning_.trials[0].reason = "";
  tuning_.trials.push_back(trial("own", 3, 3.98, 64));
  tuning_.trials.back().reason =
      "the fastest here, by 0.50 %, but gave way to the one that serves n = 1024..4096 alike";
  const Explanation explanation = explain(winner_, tuning_);
  EXPECT_EQ(explanation.candidates.back().fate, Fate::gave_way);
  EXPECT_LT(explanation.candidates.back().gap, 0);
}

TEST_F(ExplanationTest, AWinnerWithoutItsTrialIsNoFault) {
  winner_.candidate.policy = "evicted";
  const Explanation explanation = explain(winner_, tuning_);
  EXPECT_EQ(explanation.winner, nullptr);
  EXPECT_FALSE(explanation.place_of_winner);
}

}  // namespace
}  // namespace hone::tuner
