#include "runtime/measure/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <numbers>

#include "runtime/choose/compiled.h"
#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;
using namespace std::chrono_literals;

/// A race of single-launch policies over `work` (1, 2, 4) on a device that a test scripts.
class RaceTest : public testing::Test {
 protected:
  void add(const Policy& policy) {
    const Unit unit = unit_of(problem_, policy);
    auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const CompiledCode code = load_policy(*device_, problem_, policy, unit, binary);
    Contender& contender = contenders_.emplace_back();
    contender.trial = {.candidate = {policy, {8}}, .verdict = Verdict::ok};
    contender.loaded = {contender.trial.candidate, code.module};
  }
  void add_all() {
    for (std::int32_t threads : {128, 256})
      for (std::int32_t work : {1, 2, 4}) add({threads, work, 0});
  }

  /// Qualifies all, and finishes.
  void run(
      std::chrono::milliseconds budget = 1min, std::stop_token stop = {},
      const std::function<void(int, double)>& on_measured = [](int, double) {}) {
    Workload workload(device_, problem_, nullptr);
    workload.fill_all();
    const Workspaces workspaces(device_, kWorkspaceBytes, nullptr);
    Race race({*device_, problem_, workload, workspaces, nullptr});
    const RaceLimits limits{.deadline = Clock::now() + budget, .stop = stop};
    std::vector<Contender*> pointers;
    for (Contender& contender : contenders_) pointers.push_back(&contender);
    race.qualify(pointers, limits, [&](int done) {
      on_measured(done, std::isfinite(race.best_us()) ? race.best_us() : 0);
    });
    finalists_ = race.finish(limits);
    discarded_ = race.discarded_samples();
  }

  const Trial& trial(std::size_t i) const { return contenders_[i].trial; }
  const Trial& fastest() const { return finalists_.at(0)->trial; }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  TotalFamily family_;
  Problem problem_ = family_.problem(1000);
  std::deque<Contender> contenders_;
  std::vector<Contender*> finalists_;
  int discarded_ = 0;
};

/// 20 µs, and what a test says for some policies.
std::function<FakeKernel(std::string_view)> script_of(std::map<std::string, FakeKernel, std::less<>> special) {
  return [special](std::string_view source) {
    const auto found = special.find(source);
    return found == special.end() ? FakeKernel{.us = 20} : found->second;
  };
}

TEST_F(RaceTest, MeasuresWhatTheClockShows) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 7}}});
  add_all();
  run();
  EXPECT_EQ(fastest().candidate.policy, (Policy{128, 2, 0}));
  EXPECT_NEAR(trial(1).median_us, 7, 1e-9);
  EXPECT_NEAR(trial(0).median_us, 20, 1e-9);
  EXPECT_NEAR(trial(0).spread_us, 0, 1e-9);
  for (const Contender& contender : contenders_) EXPECT_GE(contender.trial.samples, 3);
}

TEST_F(RaceTest, DropsLosersEarlyAndMeasuresTheBestMore) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 10}},
                               {"threads=256 work=4 finish=alone", {.us = 10.2}},
                               {"threads=256 work=1 finish=alone", {.us = 11.5}}});
  add_all();
  run();
  EXPECT_EQ(trial(1).samples, 6);
  EXPECT_EQ(trial(5).samples, 6);
  EXPECT_EQ(trial(3).samples, 3);
  EXPECT_EQ(trial(0).samples, 3);
}

TEST_F(RaceTest, ShortCallsAreTimedInBatches) {
  device_->script = script_of({{"threads=128 work=1 finish=alone", {.us = 2}}});
  add({128, 1, 0});
  run();
  EXPECT_EQ(contenders_[0].calls_per_sample, 50);
  EXPECT_NEAR(trial(0).median_us, 2, 1e-9);
}

TEST_F(RaceTest, BatchesOfRivalsHaveAsManyCalls) {
  device_->script = script_of({{"threads=128 work=1 finish=alone", {.us = 2.6}},
                               {"threads=128 work=2 finish=alone", {.us = 2}},
                               {"threads=128 work=4 finish=alone", {.us = 19}}});
  add_all();
  run();
  EXPECT_EQ(contenders_[0].calls_per_sample, 39);
  EXPECT_EQ(contenders_[1].calls_per_sample, 39) << "as of the first one";
  EXPECT_EQ(contenders_[2].calls_per_sample, 6) << "far behind, it would take long";
}

TEST_F(RaceTest, WhoeverIsFarAheadSetsThePaceAnew) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 2}},
                               {"threads=128 work=4 finish=alone", {.us = 2.1}},
                               {"threads=256 work=1 finish=alone", {.us = 1.9}}});
  add_all();
  run();
  EXPECT_EQ(contenders_[0].calls_per_sample, 5);
  for (int i : {1, 2, 3}) EXPECT_EQ(contenders_[static_cast<std::size_t>(i)].calls_per_sample, 50) << i;
}

TEST_F(RaceTest, LongCallsAreTimedOneByOne) {
  device_->script = script_of({{"threads=128 work=1 finish=alone", {.us = 5000}}});
  add({128, 1, 0});
  run();
  EXPECT_EQ(contenders_[0].calls_per_sample, 1);
}

TEST_F(RaceTest, CallsThatTakeNoTimeAreTimedAllTheSame) {
  device_->script = script_of({{"threads=128 work=1 finish=alone", {.us = 0}}});
  add({128, 1, 0});
  run();
  EXPECT_EQ(contenders_[0].calls_per_sample, 128);
  EXPECT_EQ(trial(0).median_us, 0);
}

TEST_F(RaceTest, ADriftingClockDoesNotChangeTheWinner) {
  // The clock slows down by a tenth and recovers, over and over, while the fastest is 3 % ahead.
  device_->drift = [](double us, double now_us) {
    return us * (1.05 + 0.05 * std::sin(now_us / 3000 * std::numbers::pi));
  };
  device_->script = script_of({{"threads=256 work=2 finish=alone", {.us = 19.4}}});
  add_all();
  run();
  EXPECT_EQ(fastest().candidate.policy, (Policy{256, 2, 0}));
}

TEST_F(RaceTest, WhoDropsOutIsComparedByWhatTheFastestTookBesideIt) {
  device_->drift = [](double us, double now_us) { return us * (1 + now_us / 50'000 + 0.01 * std::sin(13 * now_us)); };
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 10}},
                               {"threads=128 work=4 finish=alone", {.us = 10}},
                               {"threads=256 work=1 finish=alone", {.us = 10.6}}});
  add_all();
  run();
  ASSERT_LT(trial(3).samples, fastest().samples);
  EXPECT_NEAR(trial(3).median_us / fastest().median_us, 1.06, 0.02) << "the clock was faster when it was timed";
}

TEST_F(RaceTest, AHopelessContenderIsTimedOnce) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 5000}}});
  add_all();
  run();
  EXPECT_EQ(trial(1).samples, 1);
  EXPECT_NEAR(trial(1).median_us, 5000, 1e-6);
  EXPECT_EQ(trial(1).verdict, Verdict::ok);
}

TEST_F(RaceTest, AFailingContenderIsARecord) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 1, .fails_at_launch = 1}},
                               {"threads=256 work=2 finish=alone", {.us = 1, .fails_at_launch = 20}}});
  add_all();
  run();
  EXPECT_EQ(trial(1).verdict, Verdict::failed);
  EXPECT_THAT(trial(1).reason.detail, Names("launch", "failed"));
  EXPECT_EQ(trial(4).verdict, Verdict::failed);
  EXPECT_EQ(trial(0).verdict, Verdict::ok);
}

TEST_F(RaceTest, AContenderThatFailsInALaterRoundIsARecordToo) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 20, .fails_at_launch = 40}}});
  device_->drift = [](double us, double now_us) { return us + 1e-6 * now_us; };  // equal samples would end the race
  add_all();
  run();
  EXPECT_EQ(trial(1).verdict, Verdict::failed);
  for (std::size_t i : {0u, 2u, 3u, 4u, 5u}) EXPECT_EQ(trial(i).verdict, Verdict::ok);
}

TEST_F(RaceTest, WhenAllFailNothingIsThrown) {
  device_->script = [](std::string_view) { return FakeKernel{.fails_at_launch = 1}; };
  add_all();
  run();
  for (const Contender& contender : contenders_) EXPECT_EQ(contender.trial.verdict, Verdict::failed);
  EXPECT_TRUE(finalists_.empty());
}

TEST_F(RaceTest, WithoutContendersThereIsNothingToDo) {
  run();
  EXPECT_EQ(device_->timings(), 0);
}

TEST_F(RaceTest, TheFirstIsMeasuredWhateverTheBudget) {
  add_all();
  run(0ms);
  EXPECT_EQ(trial(0).verdict, Verdict::ok);
  EXPECT_GE(trial(0).samples, 3);
  for (std::size_t i = 1; i < contenders_.size(); ++i) {
    EXPECT_EQ(trial(i).verdict, Verdict::rejected);
    EXPECT_EQ(trial(i).reason.code, ReasonCode::not_measured_budget);
    EXPECT_EQ(trial(i).samples, 0);
  }
}

TEST_F(RaceTest, AStopEndsItAndIsNamed) {
  std::stop_source stop;
  add_all();
  run(1min, stop.get_token(), [&](int done, double) {
    if (done == 2) stop.request_stop();
  });
  EXPECT_EQ(trial(1).samples, 3);
  EXPECT_EQ(trial(2).verdict, Verdict::rejected);
  EXPECT_EQ(trial(2).reason.code, ReasonCode::not_measured_stopped);
}

TEST_F(RaceTest, ProgressCountsContendersAndNamesTheBest) {
  device_->script = script_of(
      {{"threads=128 work=1 finish=alone", {.fails_at_launch = 1}}, {"threads=128 work=4 finish=alone", {.us = 5}}});
  add_all();
  std::vector<std::pair<int, double>> seen;
  run(1min, {}, [&](int done, double best_us) { seen.emplace_back(done, best_us); });
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_EQ(seen[0], (std::pair<int, double>{1, 0}));
  EXPECT_EQ(seen[1].first, 2);
  EXPECT_NEAR(seen[1].second, 20, 1e-9);
  EXPECT_NEAR(seen[5].second, 5, 1e-9);
}

TEST_F(RaceTest, TiesAreAllFinalists) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 10}},
                               {"threads=256 work=4 finish=alone", {.us = 10}}});
  add_all();
  run();
  ASSERT_EQ(finalists_.size(), 2u);
  for (const Contender* finalist : finalists_) EXPECT_NEAR(finalist->trial.median_us, 10, 1e-9);
}

TEST_F(RaceTest, WhatOneCallHidesShowsInALongerBatch) {
  problem_.launch_context = LaunchContext::graph;
  device_->script = script_of({{"threads=128 work=1 finish=alone", {.us = 9, .graph_us = 1}}});
  device_->timing_overhead_us = 3;  // a single call seems to take 4, and 25 such would be too few
  add({128, 1, 0});
  run();
  EXPECT_GE(contenders_[0].calls_per_sample, 85);
  EXPECT_NEAR(trial(0).median_us, 1, 0.04);
}

TEST_F(RaceTest, SamplesOfAThrottledDeviceAreThrownAwayAndCounted) {
  // For a while everything takes twice as long, and the monitor says why.
  const auto is_slow = [](double now_us) { return now_us > 1500 && now_us < 2500; };
  device_->drift = [&](double us, double now_us) { return is_slow(now_us) ? 2 * us : us; };
  device_->condition_at = [&](double now_us) { return DeviceCondition{.is_throttled = is_slow(now_us)}; };
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 19}}});
  add_all();
  run();
  EXPECT_EQ(fastest().candidate.policy, (Policy{128, 2, 0}));
  EXPECT_GT(discarded_, 0);
  EXPECT_LT(discarded_, 12);
}

TEST_F(RaceTest, ADeviceThatIsAlwaysSharedIsMeasuredAllTheSame) {
  device_->condition_at = [](double) { return DeviceCondition{.is_shared = true}; };
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 15}}});
  add_all();
  run();
  EXPECT_EQ(fastest().candidate.policy, (Policy{128, 2, 0}));
  EXPECT_GE(discarded_, 8);
  EXPECT_LE(discarded_, 8 + 6 * 48 / 4);
}

}  // namespace
}  // namespace hone
