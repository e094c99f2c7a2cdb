#include "runtime/choose/choose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <hone/error.h>

#include "runtime/search/candidates.h"
#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;
using namespace std::chrono_literals;

constexpr std::string_view kFast = "threads=256 work=2 finish=alone";

class ChooseTest : public testing::Test {
 protected:
  Tuning tune(TuningOptions options = {.budget = 1min}) { return hone::tune(device_, problem_, options); }

  /// All kernels take 20 µs except those that a test names.
  void script(std::map<std::string, FakeKernel, std::less<>> special) {
    device_->script = [special](std::string_view source) {
      const auto found = special.find(source);
      return found == special.end() ? FakeKernel{.us = 20} : found->second;
    };
  }

  std::string text(const Trial& trial) const { return family_.space().to_string(trial.candidate.policy); }
  std::vector<const Trial*> trials_of(const Tuning& tuning, std::string_view policy) const {
    std::vector<const Trial*> trials;
    for (const Trial& trial : tuning.trials)
      if (text(trial) == policy) trials.push_back(&trial);
    return trials;
  }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  TotalFamily family_;
  Problem problem_ = family_.problem(20000);
  double slow_from_us_ = 1e30;
};

TEST_F(ChooseTest, TheFastestRightCandidateWins) {
  script({{std::string(kFast), {.us = 5}}});
  const Tuning tuning = tune();
  ASSERT_TRUE(tuning.winner);
  EXPECT_EQ(text(tuning.trials[*tuning.winner]), kFast);
  EXPECT_EQ(tuning.trials[*tuning.winner].verdict, Verdict::ok);
  ASSERT_TRUE(tuning.winner_binary);
  EXPECT_EQ(tuning.winner_binary->code.size(), kFast.size());
  EXPECT_FALSE(tuning.budget_spent);
  EXPECT_FALSE(tuning.stopped);
}

TEST_F(ChooseTest, OneThatWasDroppedWhileTheClockWasHighDoesNotWin) {
  // All first samples are taken at the full clock, all later ones at two thirds of it.
  script({{std::string(kFast), {.us = 10}}, {"threads=128 work=2 finish=alone", {.us = 12.6}}});
  device_->drift = [&](double us, double now_us) { return now_us < slow_from_us_ ? us : us * 1.5; };
  TuningOptions options{.budget = 1min};
  options.on_progress = [&](const TuningProgress& progress) {
    if (progress.phase == TuningPhase::measuring && progress.done == progress.total) slow_from_us_ = device_->now_us();
  };
  const Tuning tuning = tune(options);
  ASSERT_TRUE(tuning.winner);
  EXPECT_EQ(text(tuning.trials[*tuning.winner]), kFast);
}

TEST_F(ChooseTest, AWrongResultNeverWins) {
  script({{std::string(kFast), {.us = 5, .is_wrong = true}},
          {"threads=128 work=4 finish=alone", {.us = 6, .is_unsteady = true}},
          {"threads=128 work=1 finish=joined", {.us = 4}}});  // twice 4
  const Tuning tuning = tune();
  ASSERT_TRUE(tuning.winner);
  EXPECT_EQ(text(tuning.trials[*tuning.winner]), "threads=128 work=1 finish=joined");
  for (const Trial* trial : trials_of(tuning, kFast)) EXPECT_NE(trial->verdict, Verdict::ok);
  EXPECT_TRUE(std::any_of(tuning.trials.begin(), tuning.trials.end(), [](const Trial& trial) {
    return trial.verdict == Verdict::wrong && trial.reason.code == ReasonCode::wrong_result;
  }));
}

/// The fake device wants 34 KiB in flight of an SM for so large an array; no policy has more than 16.
TEST_F(ChooseTest, WhereAllCandidatesArePrunedTheBestOfThemWins) {
  problem_ = family_.problem(std::int64_t{1} << 21);
  script({{std::string(kFast), {.us = 5}}});
  const Tuning tuning = tune();
  ASSERT_TRUE(tuning.winner);
  EXPECT_EQ(text(tuning.trials[*tuning.winner]), kFast);
  BinaryMemo memo;
  const ModelChoice choice = choose_by_model(*device_, problem_, kWorkspaceBytes, memo);
  EXPECT_TRUE(choice.trial.is_default);
  EXPECT_GT(choice.trial.predicted_us, 0);
}

TEST_F(ChooseTest, WhenAllAreWrongNobodyWins) {
  device_->script = [](std::string_view) { return FakeKernel{.is_wrong = true}; };
  const Tuning tuning = tune();
  EXPECT_FALSE(tuning.winner);
  EXPECT_FALSE(tuning.winner_binary);
  for (const Trial& trial : tuning.trials) EXPECT_NE(trial.verdict, Verdict::ok);
}

TEST_F(ChooseTest, WhatDoesNotCompileLoadOrLaunchIsRecorded) {
  script({{"threads=128 work=1 finish=alone", {.compile_error = "no such instruction"}},
          {"threads=128 work=2 finish=alone", {.load_error = "no such device"}},
          {"threads=128 work=4 finish=alone", {.fails_at_launch = 1}}});
  const Tuning tuning = tune();
  ASSERT_TRUE(tuning.winner);
  const auto first = [&](const char* policy) { return *trials_of(tuning, policy).front(); };
  EXPECT_EQ(first("threads=128 work=1 finish=alone").verdict, Verdict::failed);
  EXPECT_THAT(first("threads=128 work=1 finish=alone").reason.detail, Names("no such instruction"));
  EXPECT_EQ(first("threads=128 work=2 finish=alone").verdict, Verdict::failed);
  EXPECT_THAT(first("threads=128 work=2 finish=alone").reason.detail, Names("no such device"));
  EXPECT_EQ(trials_of(tuning, "threads=128 work=4 finish=alone").back()->verdict, Verdict::failed);
}

TEST_F(ChooseTest, WhenNothingCompilesNobodyWins) {
  device_->script = [](std::string_view) { return FakeKernel{.compile_error = "broken"}; };
  const Tuning tuning = tune();
  EXPECT_FALSE(tuning.winner);
  EXPECT_EQ(tuning.trials.size(), 12u);
  for (const Trial& trial : tuning.trials) EXPECT_EQ(trial.reason.detail, "broken");
}

TEST_F(ChooseTest, WithoutACompilerItThrows) {
  device_->compiler = "";
  try {
    tune();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

TEST_F(ChooseTest, ARefusedProblemThrows) {
  problem_.dtype = DType::f64;
  try {
    tune();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), Names("i32", "alone"));
  }
}

TEST_F(ChooseTest, EveryPolicyHasItsRecordAndTheBestComeFirst) {
  script({{"threads=128 work=1 finish=alone", {.compile_error = "broken"}}, {std::string(kFast), {.us = 5}}});
  family_ = TotalFamily({.most_threads = 128});
  const Tuning tuning = tune();
  for (const Policy& policy : family_.space().all())
    EXPECT_EQ(trials_of(tuning, family_.space().to_string(policy)).empty(),
              policy != Policy({256, 1, 0}) && policy[0] > 128)
        << "the first of those that have too many threads stands for all";
  EXPECT_TRUE(std::is_sorted(tuning.trials.begin(), tuning.trials.end(), [](const Trial& a, const Trial& b) {
    if (a.verdict != b.verdict) return a.verdict < b.verdict;
    if (a.verdict != Verdict::ok) return false;
    return a.samples != b.samples ? a.samples > b.samples : a.median_us < b.median_us;
  }));
  for (const Trial& trial : tuning.trials) {
    EXPECT_EQ(trial.reason.empty(), trial.verdict == Verdict::ok) << trial.reason;
    if (trial.candidate.policy[0] == 256) {
      EXPECT_EQ(trial.reason, "too many threads");
    }
  }
}

TEST_F(ChooseTest, MeasuredTrialsHaveTheirSequence) {
  script({{"threads=128 work=1 finish=alone", {.compile_error = "broken"}}, {std::string(kFast), {.us = 5}}});
  const Tuning tuning = tune();
  std::vector<int> sequences;
  for (const Trial& trial : tuning.trials) {
    EXPECT_EQ(trial.sequence > 0, trial.samples > 0) << text(trial);
    if (trial.sequence > 0) sequences.push_back(trial.sequence);
    EXPECT_TRUE(!trial.is_default || trial.sequence == 1) << "the model's first choice is measured first";
  }
  EXPECT_FALSE(std::is_sorted(sequences.begin(), sequences.end())) << "the fastest come first";
  std::sort(sequences.begin(), sequences.end());
  for (std::size_t i = 0; i < sequences.size(); ++i) EXPECT_EQ(sequences[i], static_cast<int>(i) + 1);
}

TEST_F(ChooseTest, OneTrialIsTheDefault) {
  const Tuning tuning = tune();
  const auto is_default = [](const Trial& trial) { return trial.is_default; };
  ASSERT_EQ(std::count_if(tuning.trials.begin(), tuning.trials.end(), is_default), 1);
  BinaryMemo memo;
  const ModelChoice model = choose_by_model(*device_, problem_, 128 * 1024, memo);
  EXPECT_EQ(std::find_if(tuning.trials.begin(), tuning.trials.end(), is_default)->candidate, model.trial.candidate);
}

TEST_F(ChooseTest, WithoutABudgetTheDefaultWins) {
  device_->on_compile = [] { std::this_thread::sleep_for(1ms); };
  script({{std::string(kFast), {.us = 5}}});
  const Tuning tuning = tune({.budget = 0ms});
  ASSERT_TRUE(tuning.winner);
  EXPECT_TRUE(tuning.trials[*tuning.winner].is_default);
  EXPECT_TRUE(tuning.budget_spent);
  EXPECT_EQ(device_->compiles(), 1);
  EXPECT_TRUE(std::any_of(tuning.trials.begin(), tuning.trials.end(), [](const Trial& trial) {
    return trial.reason.code == ReasonCode::not_compiled_budget;
  }));
}

TEST_F(ChooseTest, TiesGoToTheSmallerFootprint) {
  const Tuning tuning = tune();  // all policies of one launch take the same time
  ASSERT_TRUE(tuning.winner);
  const Trial& winner = tuning.trials[*tuning.winner];
  const auto footprint = [](const Trial& trial) {
    return trial.candidate.geometry.max_blocks * trial.candidate.policy[0] * trial.resources.registers;
  };
  for (const Trial& trial : tuning.trials)
    if (trial.verdict == Verdict::ok && trial.samples == winner.samples && trial.median_us == winner.median_us) {
      EXPECT_LE(footprint(winner), footprint(trial));
    }
}

TEST_F(ChooseTest, AStopEndsItWithoutAWinner) {
  std::stop_source stop;
  TuningOptions options{.budget = 1min, .stop = stop.get_token()};
  options.on_progress = [&](const TuningProgress& progress) {
    if (progress.phase == TuningPhase::measuring) stop.request_stop();
  };
  const Tuning tuning = tune(options);
  EXPECT_TRUE(tuning.stopped);
  EXPECT_FALSE(tuning.winner);
  EXPECT_FALSE(tuning.budget_spent);
  for (const Policy& policy : family_.space().all())
    EXPECT_FALSE(trials_of(tuning, family_.space().to_string(policy)).empty());
}

TEST_F(ChooseTest, AStopBeforeTheStartCompilesNothing) {
  std::stop_source stop;
  stop.request_stop();
  const Tuning tuning = tune({.budget = 1min, .stop = stop.get_token()});
  EXPECT_TRUE(tuning.stopped);
  EXPECT_EQ(device_->compiles(), 0);
  EXPECT_FALSE(tuning.budget_spent);
  EXPECT_EQ(tuning.trials.front().reason.code, ReasonCode::not_compiled_stopped);
}

TEST_F(ChooseTest, ProgressGoesThroughThePhasesInOrder) {
  std::vector<TuningPhase> phases;
  TuningProgress last;
  TuningOptions options{.budget = 1min};
  options.on_progress = [&](const TuningProgress& progress) {
    EXPECT_LE(progress.done, progress.total);
    last = progress;
    if (phases.empty() || phases.back() != progress.phase) phases.push_back(progress.phase);
  };
  tune(options);
  EXPECT_EQ(phases, (std::vector{TuningPhase::compiling, TuningPhase::measuring, TuningPhase::verifying}));
  EXPECT_EQ(last.done, last.total);
}

TEST_F(ChooseTest, NothingIsLeftOnTheDevice) {
  tune();
  EXPECT_EQ(device_->live_allocations(), 0u);
}

TEST_F(ChooseTest, TheMemoCompilesEachUnitOnce) {
  BinaryMemo memo;
  choose_by_measuring(device_, problem_, {.budget = 1min}, memo);
  choose_by_measuring(device_, family_.problem(40000), {.budget = 1min}, memo);
  EXPECT_EQ(device_->compiles(), 12);
  EXPECT_EQ(memo.compiled(), 12u);
}

TEST_F(ChooseTest, AnEmptyProblemHasAWinner) {
  problem_ = family_.problem(0);
  EXPECT_TRUE(tune().winner);
}

TEST(ChooseByModel, GoesOnWhereTheFirstChoiceDoesNotCompileOrLoad) {
  FakeDevice device;
  TotalFamily family;
  BinaryMemo memo;
  const Candidate first = choose_by_model(device, family.problem(1000), 131072, memo).trial.candidate;
  const std::string text = family.space().to_string(first.policy);
  for (const FakeKernel& broken : {FakeKernel{.compile_error = "broken"}, FakeKernel{.load_error = "broken"},
                                   FakeKernel{.resident_blocks = 0}, FakeKernel{.resources = {.local_bytes = 800}}}) {
    FakeDevice partly;
    partly.script = [&](std::string_view source) { return source == text ? broken : FakeKernel{}; };
    BinaryMemo other;
    const ModelChoice second = choose_by_model(partly, family.problem(1000), 131072, other);
    EXPECT_NE(second.trial.candidate.policy, first.policy);
    EXPECT_TRUE(second.trial.is_default);
    EXPECT_EQ(partly.compiles(), 2);
  }
}

TEST(ChooseByModel, TakesAnotherPolicyWhereTheCodeOfTheFirstHoldsLess) {
  FakeDevice device;
  TotalFamily family;
  BinaryMemo memo;
  const Problem problem = family.problem(100'000);
  const Candidate first = choose_by_model(device, problem, 131072, memo).trial.candidate;
  const std::string text = family.space().to_string(first.policy);
  FakeDevice crowded;
  crowded.script = [&](std::string_view source) {
    return source == text ? FakeKernel{.resident_blocks = 1} : FakeKernel{};
  };
  BinaryMemo other;
  const ModelChoice second = choose_by_model(crowded, problem, 131072, other);
  EXPECT_NE(second.trial.candidate.policy, first.policy);
  EXPECT_GT(crowded.compiles(), 1);
  EXPECT_LE(crowded.compiles(), kMostFirstChoices);
}

TEST(ChooseByModel, CompilesSomeOfManyPoliciesWhereNoneIsResidentAndSmallBlocksTowardsTheEnd) {
  TotalFamily family({.space = ParameterSpace{{{"threads", {1024, 512, 256, 128, 64, 32}},
                                               {"work", {1, 2, 4, 8, 16, 32, 64, 128, 256}},
                                               {"finish", {0, 1}, {"alone", "joined"}}}}});
  for (const bool fits_in_small : {false, true}) {
    FakeDevice device;
    device.script = [&](std::string_view source) {
      return FakeKernel{.resident_blocks = fits_in_small && source.starts_with("threads=32 ") ? 1 : 0};
    };
    BinaryMemo memo;
    const auto choose = [&] { return choose_by_model(device, family.problem(100'000), 131072, memo); };
    if (fits_in_small)
      EXPECT_THAT(family.space().to_string(choose().trial.candidate.policy), testing::StartsWith("threads=32 "));
    else
      EXPECT_THROW(choose(), Error);
    EXPECT_LE(device.compiles(), 32);
  }
}

TEST(ChooseByModel, SaysWhyNothingWorks) {
  FakeDevice device;
  device.script = [](std::string_view) { return FakeKernel{.compile_error = "line 3: no"}; };
  TotalFamily family;
  BinaryMemo memo;
  try {
    choose_by_model(device, family.problem(1000), 131072, memo);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    EXPECT_THAT(error.what(), Names("line", "3"));
    EXPECT_THAT(error.what(), Names("total", "i32", "n=1000"));
  }
}

TEST(ChooseByModel, AllocatesNothing) {
  FakeDevice device;
  TotalFamily family;
  BinaryMemo memo;
  choose_by_model(device, family.problem(1000), 131072, memo);
  EXPECT_EQ(device.allocations(), 0);
  EXPECT_EQ(device.timings(), 0);
}

}  // namespace
}  // namespace hone
