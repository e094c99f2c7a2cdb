#include "tuner/campaign/consolidate_winners.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

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

  /// The winner among these, measured with these times.
  Candidate tune(Session& session, std::int64_t n, const std::map<std::string, double>& us) {
    us_ = us;
    TuningOptions options{.budget = 1min};
    for (const auto& [policy, each] : us) options.only.push_back(candidate(policy));
    const Tuning tuning = session.tune(family_.problem(n), options);
    return tuning.trials.at(tuning.winner.value()).candidate;
  }

  ConsolidatedAnswer consolidate(Session& session) {
    return consolidate_winners(session, {.problems = {family_.problem(kSmaller), family_.problem(kLarger)},
                                         .may_change = {true, true},
                                         .budget = 1min});
  }

  const std::string kOne = "threads=128 work=1 finish=alone";
  const std::string kOther = "threads=256 work=2 finish=alone";
  const std::string kThird = "threads=128 work=4 finish=alone";
  std::map<std::string, double> us_;
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

}  // namespace
}  // namespace hone::tuner
