#include "runtime/measure/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numbers>

#include "runtime/choose/compiled.h"
#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

/// A race of single-launch variants over `work` (1, 2, 4) on a device that a test scripts.
class RaceTest : public testing::Test {
 protected:
  void add(const Variant& variant) {
    const Unit unit = unit_of(problem_, variant);
    auto binary = std::make_shared<const Binary>(device_->compile(unit));
    const CompiledCode code = load_variant(*device_, problem_, variant, unit, binary);
    trials_.push_back({.candidate = {variant, {8}}, .verdict = Verdict::ok});
    contenders_.push_back({.trial = nullptr, .loaded = {trials_.back().candidate, code.module}});
  }
  void add_all() {
    for (std::int32_t threads : {128, 256})
      for (std::int32_t work : {1, 2, 4}) add({threads, work, 0});
  }

  void run(
      std::chrono::milliseconds budget = 1min, std::stop_token stop = {},
      const std::function<void(int, double)>& on_measured = [](int, double) {}) {
    for (std::size_t i = 0; i < trials_.size(); ++i) contenders_[i].trial = &trials_[i];
    Workload workload(device_, problem_, nullptr);
    workload.fill_all();
    Race({*device_, problem_, workload, nullptr, nullptr})
        .run(contenders_,
             {.qualifying_deadline = Clock::now() + budget, .deadline = Clock::now() + budget, .stop = stop},
             on_measured);
  }

  const Trial& fastest() const {
    return *std::min_element(trials_.begin(), trials_.end(), [](const Trial& a, const Trial& b) {
      return a.samples != b.samples ? a.samples > b.samples : a.median_us < b.median_us;
    });
  }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  TotalFamily family_;
  Problem problem_ = family_.problem(1000);
  std::vector<Trial> trials_;
  std::vector<Contender> contenders_;
};

/// 20 µs, and what a test says for some variants.
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
  EXPECT_EQ(fastest().candidate.variant, (Variant{128, 2, 0}));
  EXPECT_NEAR(trials_[1].median_us, 7, 1e-9);
  EXPECT_NEAR(trials_[0].median_us, 20, 1e-9);
  EXPECT_NEAR(trials_[0].spread_us, 0, 1e-9);
  for (const Trial& trial : trials_) EXPECT_GE(trial.samples, 3);
}

TEST_F(RaceTest, DropsLosersEarlyAndMeasuresTheBestMore) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 10}},
                               {"threads=256 work=4 finish=alone", {.us = 10.1}},
                               {"threads=256 work=1 finish=alone", {.us = 11.5}}});
  add_all();
  run();
  EXPECT_EQ(trials_[1].samples, 38);  // 3 + 5 + 10 + 20
  EXPECT_EQ(trials_[5].samples, 38);
  EXPECT_EQ(trials_[3].samples, 8);  // within 25 %, not within 8 %
  EXPECT_EQ(trials_[0].samples, 3);
}

TEST_F(RaceTest, ShortCallsAreTimedInBatches) {
  device_->script = script_of({{"threads=128 work=1 finish=alone", {.us = 2}}});
  add({128, 1, 0});
  run();
  EXPECT_EQ(contenders_[0].batch->calls(), 50);
  EXPECT_NEAR(trials_[0].median_us, 2, 1e-9);
}

TEST_F(RaceTest, LongCallsAreTimedOneByOne) {
  device_->script = script_of({{"threads=128 work=1 finish=alone", {.us = 5000}}});
  add({128, 1, 0});
  run();
  EXPECT_EQ(contenders_[0].batch->calls(), 1);
}

TEST_F(RaceTest, CallsThatTakeNoTimeAreTimedAllTheSame) {
  device_->script = script_of({{"threads=128 work=1 finish=alone", {.us = 0}}});
  add({128, 1, 0});
  run();
  EXPECT_EQ(contenders_[0].batch->calls(), 64);
  EXPECT_EQ(trials_[0].median_us, 0);
}

TEST_F(RaceTest, ADriftingClockDoesNotChangeTheWinner) {
  // The clock slows down by a tenth and recovers, over and over, while the fastest is 3 % ahead.
  device_->drift = [](double us, double now_us) {
    return us * (1.05 + 0.05 * std::sin(now_us / 3000 * std::numbers::pi));
  };
  device_->script = script_of({{"threads=256 work=2 finish=alone", {.us = 19.4}}});
  add_all();
  run();
  EXPECT_EQ(fastest().candidate.variant, (Variant{256, 2, 0}));
}

TEST_F(RaceTest, AHopelessContenderIsTimedOnce) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 5000}}});
  add_all();
  run();
  EXPECT_EQ(trials_[1].samples, 1);
  EXPECT_NEAR(trials_[1].median_us, 5000, 1e-6);
  EXPECT_EQ(trials_[1].verdict, Verdict::ok);
}

TEST_F(RaceTest, AFailingContenderIsARecord) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 1, .fails_at_launch = 1}},
                               {"threads=256 work=2 finish=alone", {.us = 1, .fails_at_launch = 20}}});
  add_all();
  run();
  EXPECT_EQ(trials_[1].verdict, Verdict::failed);
  EXPECT_THAT(trials_[1].reason, HasSubstr("the launch failed"));
  EXPECT_EQ(trials_[4].verdict, Verdict::failed);
  EXPECT_EQ(trials_[0].verdict, Verdict::ok);
}

TEST_F(RaceTest, AContenderThatFailsInALaterRoundIsARecordToo) {
  device_->script = script_of({{"threads=128 work=2 finish=alone", {.us = 15, .fails_at_launch = 40}}});
  add_all();
  run();
  EXPECT_EQ(trials_[1].verdict, Verdict::failed);
  for (std::size_t i : {0u, 2u, 3u, 4u, 5u}) EXPECT_EQ(trials_[i].verdict, Verdict::ok);
}

TEST_F(RaceTest, WhenAllFailNothingIsThrown) {
  device_->script = [](std::string_view) { return FakeKernel{.fails_at_launch = 1}; };
  add_all();
  run();
  for (const Trial& trial : trials_) EXPECT_EQ(trial.verdict, Verdict::failed);
}

TEST_F(RaceTest, WithoutContendersThereIsNothingToDo) {
  run();
  EXPECT_EQ(device_->timings(), 0);
}

TEST_F(RaceTest, TheFirstIsMeasuredWhateverTheBudget) {
  add_all();
  run(0ms);
  EXPECT_EQ(trials_[0].verdict, Verdict::ok);
  EXPECT_GE(trials_[0].samples, 3);
  for (std::size_t i = 1; i < trials_.size(); ++i) {
    EXPECT_EQ(trials_[i].verdict, Verdict::rejected);
    EXPECT_THAT(trials_[i].reason, HasSubstr("budget"));
    EXPECT_EQ(trials_[i].samples, 0);
  }
}

TEST_F(RaceTest, AStopEndsItAndIsNamed) {
  std::stop_source stop;
  add_all();
  run(1min, stop.get_token(), [&](int done, double) {
    if (done == 2) stop.request_stop();
  });
  EXPECT_EQ(trials_[1].samples, 3);
  EXPECT_EQ(trials_[2].verdict, Verdict::rejected);
  EXPECT_THAT(trials_[2].reason, HasSubstr("stopped"));
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

}  // namespace
}  // namespace hone
