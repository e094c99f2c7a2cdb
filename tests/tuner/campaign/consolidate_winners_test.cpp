#include "tuner/campaign/consolidate_winners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tests/runtime/support/session_fixture.h"

namespace hone::tuner {
namespace {

using namespace std::chrono_literals;

/// Sweeps of two sizes, whose times a test invents for each policy.
class ConsolidateWinnersTest : public FakeSessionTest {
 protected:
  static constexpr std::int64_t kSmaller = 4096, kLarger = 8192;

  ConsolidateWinnersTest() {
    family_ = TotalFamily({.alone_is_one_block = true});
    device_->script = [this](std::string_view source) {
      const auto at = us_.find(std::string(source));
      return FakeKernel{.us = at != us_.end() ? at->second : 1000};
    };
  }

  Candidate candidate(const std::string& policy) const { return {*family_.space().parse(policy), {.max_blocks = 1}}; }

  /// Measured with these times; stored as if it had taken `tuning_ms`.
  Tuning tune(Session& session, std::int64_t n, const std::map<std::string, double>& us, double tuning_ms) {
    us_ = us;
    TuningOptions options{.budget = 1min};
    for (const auto& [policy, each] : us) options.only.push_back(candidate(policy));
    Tuning tuning = session.tune(family_.problem(n), options);
    tuning.compile_ms = 0;
    tuning.measure_ms = tuning_ms;
    session.adopt(tuning, std::array{family_.problem(n)});
    return tuning;
  }

  /// The winner among these, measured with these times.
  Candidate tune(Session& session, std::int64_t n, const std::map<std::string, double>& us) {
    const Tuning tuning = tune(session, n, us, 1000);
    return tuning.trials.at(tuning.winner.value()).candidate;
  }

  ConsolidatedAnswer consolidate(Session& session, std::int64_t larger = kLarger, const WorkHooks& hooks = {},
                                 std::chrono::milliseconds budget = 1min) {
    const ConsolidateRequest request{.problems = {family_.problem(kSmaller), family_.problem(larger)},
                                     .may_change = {true, true},
                                     .budget = budget};
    return consolidate_winners(session, request, hooks);
  }

  /// The rows that are measured, of which the first and the last one are tuned.
  std::vector<int> rows_measured(Session& session, std::int64_t larger) {
    std::vector<int> rows;
    const auto on_progress = [&](const TuningProgress& progress) {
      if (progress.phase == TuningPhase::measuring) rows.push_back(progress.done);
    };
    const ConsolidatedAnswer result = consolidate(session, larger, {.on_progress = on_progress});
    EXPECT_EQ(result.sweep.failure, "");
    filled_ = result.sweep.filled;
    return rows;
  }

  /// The rows that were measured between two tuned ones that are four octaves apart, in that order.
  std::vector<int> rows_measured_between(double tuning_ms) {
    constexpr std::int64_t kFarLarger = 16 * kSmaller;
    Session session(device_, options(MissPolicy::error));
    tune(session, kSmaller, {{kOne, 50}, {kOther, 100}}, tuning_ms);
    tune(session, kFarLarger, {{kOne, 100}, {kOther, 50}}, tuning_ms);
    us_ = {{kOne, 50}, {kOther, 55}};
    std::vector<int> rows = rows_measured(session, kFarLarger);
    EXPECT_EQ(filled_, 15U) << "measured or not, all are served";
    return rows;
  }

  const std::string kOne = "threads=128 work=1 finish=alone";
  const std::string kOther = "threads=256 work=2 finish=alone";
  const std::string kThird = "threads=128 work=4 finish=alone";
  std::map<std::string, double> us_;
  std::size_t filled_ = 0;  ///< classes between, in the last rows_measured()
};

TEST_F(ConsolidateWinnersTest, WhatASizesOwnSearchMissedIsTakenFromTheNextOne) {
  Session session(device_, options(MissPolicy::error));
  EXPECT_EQ(tune(session, kSmaller, {{kOne, 50}, {kOther, 51}}), candidate(kOne));
  EXPECT_EQ(tune(session, kLarger, {{kOne, 100}, {kThird, 60}}), candidate(kThird));
  us_ = {{kOne, 70}, {kOther, 50}, {kThird, 60}};
  const ConsolidatedAnswer result = consolidate(session);
  EXPECT_EQ(result.sweep.failure, "");
  EXPECT_EQ(session.prepare(family_.problem(kLarger)).winner->candidate, candidate(kOther));
}

TEST_F(ConsolidateWinnersTest, WhatASizesOwnSearchMeasuredIsNotMeasuredAgain) {
  Session session(device_, options(MissPolicy::error));
  tune(session, kSmaller, {{kOne, 50}, {kOther, 51}, {kThird, 500}});
  EXPECT_EQ(tune(session, kLarger, {{kOne, 100}, {kOther, 90}, {kThird, 60}}), candidate(kThird));
  us_ = {{kOne, 70}, {kOther, 50}, {kThird, 60}};
  consolidate(session);
  EXPECT_EQ(session.prepare(family_.problem(kLarger)).winner->candidate, candidate(kThird));
}

TEST_F(ConsolidateWinnersTest, SizeIsNotMeasuredAgainWhereItsOwnTrialsAreClear) {
  Session session(device_, options(MissPolicy::error));
  tune(session, kSmaller, {{kOne, 50}, {kOther, 100}});
  tune(session, kLarger, {{kOne, 100}, {kOther, 50}});
  EXPECT_THAT(rows_measured(session, kLarger), ::testing::UnorderedElementsAre(1, 2, 3)) << "those between";
}

TEST_F(ConsolidateWinnersTest, NothingIsMeasuredWhereTheFamilyWouldPruneIt) {
  Session session(device_, options(MissPolicy::error));
  tune(session, kSmaller, {{kOne, 50}});
  tune(session, kLarger, {{kOther, 50}});
  TotalFamilyOptions pruning{.alone_is_one_block = true};
  pruning.prunes = [](const ProblemClass&, const Policy&) { return Reason("an opinion"); };
  family_ = TotalFamily(std::move(pruning));
  const std::map<std::string, int> before = device_->launches();
  EXPECT_EQ(consolidate(session).sweep.winners, 2U);
  EXPECT_EQ(device_->launches(), before);
}

TEST_F(ConsolidateWinnersTest, SizeWhoseBudgetEndsBeforeOthersAreMeasuredKeepsItsWinner) {
  Session session(device_, options(MissPolicy::error));
  tune(session, kSmaller, {{kOne, 50}});
  tune(session, kLarger, {{kOther, 50}});
  us_ = {{kOne, 50}, {kOther, 50}};
  consolidate(session, kLarger, {}, 0ms);
  EXPECT_EQ(session.prepare(family_.problem(kSmaller)).winner->candidate, candidate(kOne));
  EXPECT_EQ(session.prepare(family_.problem(kLarger)).winner->candidate, candidate(kOther));
}

TEST_F(ConsolidateWinnersTest, CenterBetweenTwoSizesIsMeasuredFirst) {
  EXPECT_THAT(rows_measured_between(1e6), ::testing::ElementsAre(8, 4, 12));
}

TEST_F(ConsolidateWinnersTest, ComparingSizesTakesAShareOfTheTimeThatTuningThemTook) {
  EXPECT_THAT(rows_measured_between(0), ::testing::IsEmpty());
}

}  // namespace
}  // namespace hone::tuner
