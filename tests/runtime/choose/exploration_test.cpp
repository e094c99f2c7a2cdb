// The search through a space of a hundred policies, whose times a test invents.
#include "runtime/choose/exploration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <thread>

#include <hone/error.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/waves.h"
#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using testing::HasSubstr;
using test::Names;
using namespace std::chrono_literals;

class ExplorationTest : public testing::Test {
 protected:
  ExplorationTest() { rank(); }

  void rank() {
    for (const RankedPolicy& ranked : rank_policies(device_->facts(), problem_).policies)
      predicted_us_[family_.space().to_string(ranked.policy)] = ranked.prediction.us();
  }

  /// `us` invents a time from the spelled policy and what the model predicts for it.
  void script(const std::function<double(std::string_view, double)>& us) {
    for (const auto& [policy, predicted] : predicted_us_) us_[policy] = us(policy, predicted);
    device_->script = [this](std::string_view source) { return FakeKernel{.us = us_.at(std::string(source))}; };
  }

  Tuning tune(TuningOptions options = {.budget = 1min}) {
    BinaryMemo memo;
    Tuning tuning = choose_by_measuring(device_, problem_, options, memo);
    EXPECT_EQ(tuning.stopped, tuning.search_end == SearchEnd::stopped);
    for (const Policy& policy : family_.space().all())
      EXPECT_TRUE(std::any_of(tuning.trials.begin(), tuning.trials.end(),
                              [&](const Trial& trial) { return trial.candidate.policy == policy; }));
    return tuning;
  }

  std::string text(const Trial& trial) const { return family_.space().to_string(trial.candidate.policy); }
  /// Joined policies are two launches.
  static double calls_us(std::string_view policy, double us) { return policy.ends_with("joined") ? 2 * us : us; }
  double won_us(const Tuning& tuning) const {
    const std::string policy = text(tuning.trials.at(tuning.winner.value()));
    return calls_us(policy, us_.at(policy));
  }
  double best_us() const {
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [policy, us] : us_) best = std::min(best, calls_us(policy, us));
    return best;
  }
  static std::size_t measured(const Tuning& tuning) {
    return static_cast<std::size_t>(std::count_if(tuning.trials.begin(), tuning.trials.end(),
                                                  [](const Trial& trial) { return trial.samples > 0; }));
  }

  /// −1 … 1, the same for the same policy.
  static double noise(std::string_view policy) {
    return static_cast<double>(std::hash<std::string_view>{}(policy) % 2001) / 1000 - 1;
  }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>(FakeDevice::facts_with_bandwidth());
  TotalFamily family_{{.space = ParameterSpace{{{"threads", {32, 64, 128, 256, 512, 1024}},
                                                {"work", {1, 2, 4, 8, 16, 32, 64, 128}},
                                                {"finish", {0, 1}, {"alone", "joined"}}}}}};
  Problem problem_ = [this] {
    Problem problem = family_.problem(50000);
    problem.launch_context = LaunchContext::graph;  // in a stream, the host would set the pace
    return problem;
  }();
  std::map<std::string, double> predicted_us_;
  std::map<std::string, double> us_;
};

TEST_F(ExplorationTest, AGoodModelSavesMostOfTheWork) {
  // A script tells policies apart, not geometries: most policies have one.
  family_ = TotalFamily({.space = family_.space(), .alone_is_one_block = true});
  rank();
  script([](std::string_view policy, double predicted) { return 3 * predicted * (1 + 0.1 * noise(policy)); });
  const Tuning tuning = tune();
  ASSERT_TRUE(tuning.winner);
  EXPECT_EQ(tuning.search_end, SearchEnd::rest_expected_slower);
  EXPECT_LE(won_us(tuning), 1.02 * best_us());
  EXPECT_LT(device_->compiles(), 80);
  EXPECT_LT(measured(tuning), tuning.trials.size() / 2);
  EXPECT_GT(tuning.rank_correlation, 0.5);
  EXPECT_TRUE(std::any_of(tuning.trials.begin(), tuning.trials.end(), [](const Trial& trial) {
    return trial.reason.code == ReasonCode::not_measured_gain;
  }));
}

TEST_F(ExplorationTest, TimesWithoutAnyPatternAreSearchedAlmostToTheEnd) {
  script([](std::string_view policy, double) { return 100 * (1.5 + noise(policy)); });
  const Tuning tuning = tune();
  ASSERT_TRUE(tuning.winner);
  const auto left = std::count_if(tuning.trials.begin(), tuning.trials.end(), [](const Trial& trial) {
    return trial.reason.text().starts_with("not compiled");
  });
  EXPECT_LE(left, 32) << "a wave at the end, which was compiled ahead";
  EXPECT_LE(won_us(tuning), 1.1 * best_us());
}

TEST_F(ExplorationTest, WhatIsNotCompiledInTimeComesWithALaterWave) {
  script([](std::string_view, double predicted) { return predicted; });
  // More than the share of the budget that the first wave may take, and less than what first samples may.
  const auto budget = 12s;
  const std::size_t wave = std::clamp<std::size_t>(device_->parallel_compilations(), 16, 32);
  const auto rounds =
      static_cast<int>((wave + device_->parallel_compilations() - 1) / device_->parallel_compilations());
  std::atomic<std::size_t> compiled = 0;
  device_->on_compile = [&] {
    if (compiled++ < wave) std::this_thread::sleep_for(0.6 * budget / rounds);
  };
  const Tuning tuning = tune({.budget = budget});
  for (std::size_t i = 0; i < family_.space().parameters().size(); ++i)
    for (const std::int32_t value : family_.space().parameters()[i].values)
      EXPECT_TRUE(std::any_of(tuning.trials.begin(), tuning.trials.end(), [&](const Trial& trial) {
        return trial.samples > 0 && trial.candidate.policy[static_cast<int>(i)] == value;
      })) << family_.space().parameters()[i].name << '=' << value;
}

TEST_F(ExplorationTest, WhatTheModelDoesNotKnowOfAParameterIsLearnt) {
  // The model likes it least; it is one in six of each parameter's values, and the fastest by far.
  script([](std::string_view policy, double predicted) {
    const bool is_quick = policy.starts_with("threads=32 ");
    return (is_quick ? 1 : 4) * predicted * (1 + 0.02 * noise(policy));
  });
  const Tuning tuning = tune();
  ASSERT_TRUE(tuning.winner);
  EXPECT_LE(won_us(tuning), 1.02 * best_us());
  EXPECT_LT(device_->compiles(), 80);
}

TEST_F(ExplorationTest, WhatDiffersFromTheLeaderInANameAloneIsMeasured) {
  // All is as the model says, but that two launches take a fifth longer than one, and that one pair is out of the
  // order.
  const auto with_one = [](std::string_view policy) {
    return std::string(policy.substr(0, policy.rfind(' '))) + " finish=alone";
  };
  std::vector<std::string> alone;
  for (const auto& [policy, us] : predicted_us_)
    if (policy == with_one(policy)) alone.push_back(policy);
  std::sort(alone.begin(), alone.end(),
            [&](const std::string& a, const std::string& b) { return predicted_us_.at(a) < predicted_us_.at(b); });
  const std::string leader = alone[2];
  const double leader_us = 0.9 * predicted_us_.at(alone[0]);
  script([&](std::string_view policy, double) {
    const std::string one = with_one(policy);
    const double us = one == leader ? leader_us : predicted_us_.at(one);
    return 3 * (policy == one ? us : (one == leader ? 0.97 : 1.2) * us / 2);
  });
  const Tuning tuning = tune();
  ASSERT_TRUE(tuning.winner);
  EXPECT_LE(won_us(tuning), best_us() * (1 + 1e-9));
  EXPECT_LT(measured(tuning), tuning.trials.size() / 2);
}

TEST_F(ExplorationTest, ANeighbouringProblemsMeasurementsSaveMostOfTheSearch) {
  script([](std::string_view policy, double predicted) {
    return (policy.starts_with("threads=128 ") ? 1 : 3) * predicted * (1 + 0.02 * noise(policy));
  });
  const Tuning first = tune();
  TuningOptions options{.budget = 1min};
  for (const Trial& trial : first.trials)
    if (trial.samples > 0) options.nearby.push_back(trial);
  const int compiled = device_->compiles();
  const Tuning second = tune(options);
  EXPECT_LE(won_us(second), 1.02 * best_us());
  EXPECT_LT(measured(second), measured(first));
  EXPECT_LT(device_->compiles() - compiled, compiled);
}

TEST_F(ExplorationTest, ExhaustiveMeasuresEveryCandidate) {
  script([](std::string_view, double predicted) { return 3 * predicted; });
  const Tuning tuning = tune({.budget = 1min, .exhaustive = true});
  EXPECT_EQ(tuning.search_end, SearchEnd::everything_searched);
  EXPECT_EQ(device_->compiles(), 96);
  for (const Trial& trial : tuning.trials) EXPECT_NE(trial.reason.code, ReasonCode::not_measured_gain);
  EXPECT_NEAR(won_us(tuning), best_us(), 1e-9);
}

TEST_F(ExplorationTest, ANeighboursWinnerIsMeasuredHoweverLowItRanks) {
  const auto last = std::max_element(predicted_us_.begin(), predicted_us_.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string low = last->first;
  script([&](std::string_view policy, double predicted) { return policy == low ? 0.9 : 3 * predicted; });
  const Candidate known{*family_.space().parse(low), {8}};
  const Tuning tuning = tune({.budget = 1min, .start_from = {known}});
  ASSERT_TRUE(tuning.winner);
  EXPECT_EQ(text(tuning.trials[*tuning.winner]), low);
}

TEST_F(ExplorationTest, ALeaderAtTheRooflineEndsTheSearch) {
  script([](std::string_view, double) { return 0.4; });  // less than a launch
  const Tuning tuning = tune();
  EXPECT_EQ(tuning.search_end, SearchEnd::near_roofline);
  EXPECT_LT(device_->compiles(), 96);
}

TEST_F(ExplorationTest, WarmInputsMayBeFasterThanMemory) {
  const double from_memory_us = roofline_us(device_->facts(), {}, problem_);
  const double launch_us = roofline_us(device_->facts(), {}, problem_, InputState::warm);
  const double between_us = (from_memory_us + launch_us) / 2;
  script([&](std::string_view policy, double) { return between_us * (1 + 0.02 * noise(policy)); });
  EXPECT_EQ(tune().search_end, SearchEnd::near_roofline);
  const Tuning warm = tune({.budget = 1min, .inputs = InputState::warm});
  EXPECT_NE(warm.search_end, SearchEnd::near_roofline);
  EXPECT_EQ(warm.roofline_us, launch_us);
}

TEST_F(ExplorationTest, TheBudgetEndsItWithAWinner) {
  script([](std::string_view policy, double) { return 100 * (1.5 + noise(policy)); });
  device_->on_compile = [] { std::this_thread::sleep_for(2ms); };
  const Tuning tuning = tune({.budget = 40ms});
  EXPECT_TRUE(tuning.winner);
  EXPECT_TRUE(tuning.budget_spent);
  EXPECT_EQ(tuning.search_end, SearchEnd::budget_spent);
}

TEST_F(ExplorationTest, WhatWasCompiledFirstIsMeasuredThoughTheBudgetIsSpent) {
  script([](std::string_view, double predicted) { return 3 * predicted; });
  device_->on_compile = [] { std::this_thread::sleep_for(300ms); };
  const Tuning tuning = tune({.budget = 200ms});
  EXPECT_EQ(tuning.search_end, SearchEnd::budget_spent);
  EXPECT_GE(measured(tuning), std::min(2u, std::thread::hardware_concurrency()));
}

TEST(FirstWave, IsMeasuredForAQuarterOfTheTimeThatItTookToCompileUpToTheBudget) {
  EXPECT_EQ(time_for_first_wave(300ms, 40), 60ms) << "a fifth of the budget at least";
  EXPECT_EQ(time_for_first_wave(300ms, 800), 200ms);
  EXPECT_EQ(time_for_first_wave(300ms, 8000), 300ms);
}

TEST_F(ExplorationTest, TiesOfEqualResourcesGoToWhatServesNeighbours) {
  script([](std::string_view policy, double) {
    return policy == "threads=64 work=1 finish=alone" || policy == "threads=64 work=2 finish=alone" ? 50 : 500;
  });
  for (const std::int32_t work : {1, 2}) {
    const Candidate known{{64, work, 0}, {.max_blocks = 8}};
    const Tuning tuning = tune({.budget = 1min, .exhaustive = true, .start_from = {known}});
    EXPECT_EQ(tuning.trials[tuning.winner.value()].candidate, known);
  }
}

TEST_F(ExplorationTest, OnlyMeasuresWhatItLists) {
  script([](std::string_view policy, double) { return policy == "threads=256 work=4 finish=alone" ? 4.0 : 5.0; });
  const Candidate slow{*family_.space().parse("threads=64 work=1 finish=alone"), {.max_blocks = 16}};
  const Candidate fast{*family_.space().parse("threads=256 work=4 finish=alone"), {.max_blocks = 1024}};
  BinaryMemo memo;
  const TuningOptions options{.budget = 1min, .only = {slow, fast}};
  const Tuning tuning = choose_by_measuring(device_, problem_, options, memo);
  ASSERT_EQ(tuning.trials.size(), 2u) << "other policies have no part in it";
  EXPECT_EQ(device_->compiles(), 2);
  EXPECT_EQ(tuning.trials[tuning.winner.value()].candidate, fast) << "though its grid is larger than the work";
  for (const Trial& trial : tuning.trials) {
    EXPECT_EQ(trial.verdict, Verdict::ok) << trial.reason;
    EXPECT_GT(trial.samples, 0);
    EXPECT_FALSE(trial.is_default);
  }
}

TEST_F(ExplorationTest, NothingIsInFlightWhenItsMemoryIsFreed) {
  const Candidate too_large{*family_.space().parse("threads=64 work=1 finish=alone"), {.max_blocks = 16}};
  device_->script = [](std::string_view) { return FakeKernel{.resident_blocks = 0}; };
  BinaryMemo memo;
  const Tuning tuning = choose_by_measuring(device_, problem_, {.budget = 1min, .only = {too_large}}, memo);
  EXPECT_FALSE(tuning.winner) << "inputs were filled, and then nothing ran that had to be waited for";
  EXPECT_EQ(device_->frees_in_flight(), 0);
}

TEST_F(ExplorationTest, ExcludedCandidatesAreNeverRun) {
  const std::string policy = "threads=256 work=4 finish=alone";
  script([&](std::string_view each, double predicted) { return each == policy ? 4.0 : 3 * predicted; });
  const Candidate any_geometry{*family_.space().parse(policy), {.max_blocks = 0}};
  const Tuning tuning =
      tune({.budget = 1min, .exhaustive = true, .excluded = {{any_geometry, "its process was killed"}}});
  ASSERT_TRUE(tuning.winner);
  EXPECT_FALSE(device_->launches().contains(policy));
  for (const Trial& trial : tuning.trials) {
    if (text(trial) != policy || trial.verdict == Verdict::rejected) continue;
    EXPECT_EQ(trial.verdict, Verdict::failed);
    EXPECT_EQ(trial.reason, "its process was killed");
  }
}

TEST_F(ExplorationTest, WhatIsAboutToRunIsToldBeforeItRuns) {
  script([](std::string_view, double predicted) { return 3 * predicted; });
  std::string running;
  std::map<std::string, int> launched;
  TuningOptions options{.budget = 1min};
  options.on_run = [&](const Candidate& candidate) {
    // All launches since the last call are of the candidate that it named.
    for (const auto& [policy, count] : device_->launches()) {
      EXPECT_TRUE(launched[policy] == count || policy == running) << policy << " ran, told was " << running;
      launched[policy] = count;
    }
    running = family_.space().to_string(candidate.policy);
  };
  ASSERT_TRUE(tune(options).winner);
  EXPECT_NE(running, "");
}

TEST_F(ExplorationTest, ADeviceThatDoesNotWorkAnyMoreIsNoCandidatesFailure) {
  const std::string killer = "threads=256 work=4 finish=alone";
  device_->script = [&](std::string_view policy) { return FakeKernel{.us = 50, .loses_device = policy == killer}; };
  BinaryMemo memo;
  try {
    choose_by_measuring(device_, problem_, {.budget = 1min, .exhaustive = true}, memo);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_lost);
    EXPECT_THAT(error.what(), Names(killer));
  }
}

}  // namespace
}  // namespace hone
