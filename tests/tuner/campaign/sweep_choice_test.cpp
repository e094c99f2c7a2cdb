#include "tuner/campaign/sweep_choice.h"

#include <gmock/gmock.h>
#include <hone/reduce_axis.h>
#include <hone/tuned_reduce.h>

#include "tests/support/names.h"

namespace hone::tuner {
namespace {

using test::Names;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Problem sum_of(std::int64_t n) { return reduce_problem(ReduceOp::sum, DType::f32, n); }

Candidate candidate(std::size_t number) { return {sum_of(1).family->space().all()[number], {.max_blocks = 1}}; }

const Candidate kA = candidate(0), kB = candidate(1), kC = candidate(2);

struct Time {
  Candidate candidate;
  double us = 0;
};

Tuning times(const std::vector<Time>& times, double spread = 0) {
  Tuning tuning;
  for (const Time& time : times)
    tuning.trials.push_back({.candidate = time.candidate,
                             .median_us = time.us,
                             .spread_us = spread * time.us,
                             .samples = 9,
                             .verdict = time.us > 0 ? Verdict::ok : Verdict::failed});
  return tuning;
}

/// 1024, 2048 and 4096, the one in the middle between two tuned ones.
std::vector<SweepRow> three_rows() {
  return {{.problem = sum_of(1024), .nearest_winner = 0, .is_tuned = true},
          {.problem = sum_of(2048), .nearest_winner = 1},
          {.problem = sum_of(4096), .nearest_winner = 1, .is_tuned = true}};
}

TEST(SweepChoice, OnlyDifferingAxis) {
  EXPECT_EQ(only_differing_axis(std::vector{sum_of(1), sum_of(2)}), 0U);
  EXPECT_EQ(only_differing_axis(std::vector{sum_of(1)}), std::nullopt);
  const ReduceSpec spec{.op = ReduceOp::sum, .dtype = DType::f32};
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    return reduce_rows_problem(spec, {.rows = rows, .columns = columns});
  };
  EXPECT_EQ(only_differing_axis(std::vector{matrix(4, 8), matrix(4, 16)}), 1U);
  EXPECT_EQ(only_differing_axis(std::vector{matrix(4, 8), matrix(8, 16)}), std::nullopt);
}

TEST(SweepChoice, TunedRowsBesideOne) {
  const std::vector<SweepRow> rows = three_rows();
  EXPECT_THAT(tuned_beside(rows, 1), ElementsAre(0U, 2U));
  EXPECT_THAT(tuned_beside(rows, 0), ElementsAre(0U, 2U));
  EXPECT_THAT(tuned_beside(rows, 2), ElementsAre(0U, 2U));
}

TEST(SweepComparison, BetweenTwoSizesWhatIsFarBehindAtBothIsNotMeasured) {
  std::vector<SweepRow> rows = three_rows();
  rows[1].runners_up = {{kC, 1}};
  SweepComparison comparison(3, {kA, kB, kC}, 2);
  EXPECT_THAT(comparison.list_compared(rows, 0), ElementsAre(kA, kB)) << "of a tuned row all winners";
  comparison.record(0, times({{kA, 10}, {kB, 20}}), nullptr, &kA);
  comparison.record(2, times({{kA, 10}, {kB, 11}}), nullptr, &kB);
  EXPECT_THAT(comparison.list_compared(rows, 1), ElementsAre(kA, kB, kC));
  comparison.record(2, times({{kA, 10}, {kB, 12}}), nullptr, &kB);
  EXPECT_THAT(comparison.list_compared(rows, 1), IsEmpty()) << "one is left, which is the fastest at both";
}

TEST(SweepComparison, WhatIsKnownToBeSlowIsNotMeasuredAndNotChosen) {
  std::vector<SweepRow> rows = three_rows();
  rows[0].slow = {{kB, 1.5}, {candidate(3), 9}};
  rows[1].slow = {{kA, 0}};
  SweepComparison comparison(3, {kA, kB}, 2);
  EXPECT_THAT(comparison.list_compared(rows, 0), ElementsAre(kA));
  comparison.record_only(0, kA);
  comparison.record_slow(rows, 0);
  EXPECT_EQ(comparison.ratio(0, 0), 1);
  EXPECT_EQ(comparison.ratio(0, 1), 1.5);
  comparison.record(2, times({{kA, 12}, {kB, 10}}), nullptr, &kB);
  EXPECT_THAT(comparison.list_compared(rows, 1), ElementsAre(kB));
}

TEST(SweepComparison, WhereAllAreAlikeNothingIsMeasuredBetween) {
  std::vector<SweepRow> rows = three_rows();
  SweepComparison comparison(3, {kA, kB}, 2);
  comparison.record(0, times({{kA, 1000}, {kB, 1001}}), nullptr, &kA);
  comparison.record(2, times({{kA, 1001}, {kB, 1000}}), nullptr, &kB);
  EXPECT_THAT(comparison.list_compared(rows, 1), IsEmpty());
  rows[1].is_measured = false;
  comparison.fill_unmeasured(rows);
  EXPECT_DOUBLE_EQ(comparison.ratio(1, 0), 1.001) << "as at the next larger one";
}

TEST(SweepComparison, WorseOfARowAndItsCornerCounts) {
  SweepComparison comparison(1, {kA, kB, kC}, 3);
  const Tuning corner = times({{kA, 0}, {kB, 30}, {kC, 10}});
  comparison.record(0, times({{kA, 10}, {kB, 10}, {kC, 20}}), &corner, &kA);
  EXPECT_EQ(comparison.ratio(0, 0), 1) << "its own winner serves it though it cannot run at the corner";
  EXPECT_EQ(comparison.ratio(0, 1), 3);
  EXPECT_EQ(comparison.ratio(0, 2), 2);
  comparison.record(0, times({{kA, 10}, {kB, 10}, {kC, 20}}), &corner, nullptr);
  EXPECT_EQ(comparison.ratio(0, 0), 0);
  comparison.record_only(0, kC);
  EXPECT_EQ(comparison.ratio(0, 1), 0);
  EXPECT_EQ(comparison.ratio(0, 2), 1);
}

TEST(SweepComparison, WhatSamplesScatterIsAddedToAllButTheFastest) {
  std::vector<SweepRow> rows = three_rows();
  rows[1].is_measured = false;
  rows[0].comparison = times({{kA, 10}, {kB, 11}}, 0.25);
  rows[2].comparison = times({{kA, 12}, {kB, 10}}, 0.5);
  SweepComparison comparison(3, {kA, kB}, 2);
  comparison.record(0, rows[0].comparison, nullptr, nullptr);
  comparison.record(2, rows[2].comparison, nullptr, nullptr);
  comparison.fill_unmeasured(rows);
  const ShapeTrials most = comparison.ratios_at_most(rows);
  EXPECT_DOUBLE_EQ(most.at(0, 0), 1);
  EXPECT_DOUBLE_EQ(most.at(0, 1), 1.35);
  EXPECT_DOUBLE_EQ(most.at(1, 0), 1.7) << "as the next larger one";
  EXPECT_DOUBLE_EQ(most.at(2, 1), 1);
}

TEST(SweepChoice, OneWinnerServesWhatItIsNearlyTheFastestFor) {
  std::vector<SweepRow> rows = three_rows();
  SweepComparison comparison(3, {kA, kB}, 2);
  rows[0].comparison = times({{kA, 1000}, {kB, 1005}});
  rows[1].comparison = rows[2].comparison = times({{kA, 2000}, {kB, 1000}});
  for (std::size_t row = 0; row < 3; ++row) comparison.record(row, rows[row].comparison, nullptr, nullptr);
  for (const std::optional<std::size_t> axis : {std::optional<std::size_t>(0), std::optional<std::size_t>()}) {
    const SweepChoice few = choose_winners(comparison, rows, axis, 0.01);
    EXPECT_THAT(few.candidate_of, ElementsAre(1U, 1U, 1U));
    EXPECT_EQ(few.winners, 1U);
    EXPECT_NEAR(few.worst_regret, 0.005, 1e-9);
    EXPECT_NEAR(few.mean_regret, 0.005 / 3, 1e-9);
    const SweepChoice own = choose_winners(comparison, rows, axis, 0.001);
    EXPECT_THAT(own.candidate_of, ElementsAre(0U, 1U, 1U));
    EXPECT_EQ(own.winners, 2U);
    EXPECT_EQ(own.worst_regret, 0);
  }
}

TEST(SweepChoice, ServedTextNamesTheSizesOrCountsTheShapes) {
  const std::vector<SweepRow> rows = three_rows();
  const SweepChoice choice{.candidate_of = {0, 1, 1}};
  EXPECT_THAT(served_text(rows, 2, choice, 0),
              Names("2048", "4096"));
  EXPECT_THAT(served_text(rows, 2, choice, std::nullopt),
              Names("2", "3"));
}

TEST(SweepChoice, NearestWinnerIsThatOfTheRunnerUpOrTheNearestWithThatWinner) {
  const std::vector<Problem> problems{sum_of(1024), sum_of(4096), sum_of(1 << 16)};
  const std::vector<Candidate> winners{kA, kB, kA};
  SweepRow row{.problem = sum_of(8192), .nearest_winner = 1, .runners_up = {{kC, 0}}};
  row.chosen = kC;
  EXPECT_EQ(nearest_winner(row, problems, winners), 0U);
  row.chosen = kA;
  EXPECT_EQ(nearest_winner(row, problems, winners), 0U) << "3 octaves, as far as the other one";
  row.problem = sum_of(1 << 14);
  EXPECT_EQ(nearest_winner(row, problems, winners), 2U);
}

TEST(SweepChoice, HandedOverTuningHasTheNewFiguresAndTheReason) {
  Tuning tuning = times({{kA, 10}, {kB, 12}});
  tuning.trials[0].is_default = true;
  tuning.trials[0].sequence = 2;
  tuning.trials[1].sequence = 1;
  tuning.winner = 0;
  hand_over(tuning, times({{kA, 11}, {kB, 13}, {kC, 10.5}}), kC, kA, "why");
  ASSERT_THAT(tuning.trials, SizeIs(3));
  EXPECT_EQ(tuning.winner, 2U);
  EXPECT_EQ(tuning.trials[0].median_us, 11);
  EXPECT_EQ(tuning.trials[0].reason, "why");
  EXPECT_TRUE(tuning.trials[0].is_default) << "as in the tuning, not in the comparison";
  EXPECT_EQ(tuning.trials[1].median_us, 12) << "it has nothing to do with it";
  EXPECT_EQ(tuning.trials[2].median_us, 10.5);
  EXPECT_EQ(tuning.trials[2].reason, "");
  EXPECT_EQ(tuning.trials[0].sequence, 2);
  EXPECT_EQ(tuning.trials[2].sequence, 3) << "measured after the search";
}

}  // namespace
}  // namespace hone::tuner
