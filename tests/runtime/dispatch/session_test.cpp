// Tests of a session with a problem, on a device that only pretends.
#include <hone/session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <hone/error.h>
#include <hone/tuned_reduce.h>

#include "cache/store.h"
#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using testing::HasSubstr;
using test::Names;

using SessionTest = FakeSessionTest;

TEST_F(SessionTest, WithoutADeviceNothingIsMade) {
  const std::shared_ptr<Device> none;
  std::string message;
  EXPECT_EQ(code_of([&] { Session session(none, options()); }, &message), ErrorCode::invalid_argument);
  EXPECT_THAT(message, HasSubstr("Device::open"));
  EXPECT_EQ(code_of([&] { DeviceBuffer buffer(none, 8); }, &message), ErrorCode::invalid_argument);
  EXPECT_THAT(message, HasSubstr("Device::open"));
}

TEST_F(SessionTest, ALaunchListAndArgumentsRefuseWhatTheyHaveNoRoomFor) {
  Arguments arguments;
  for (int i = 0; i < Arguments::kCapacity; ++i) arguments.push(i);
  EXPECT_EQ(code_of([&] { arguments.push(1); }), ErrorCode::invalid_argument);
  EXPECT_EQ(arguments.count(), Arguments::kCapacity);
  LaunchList launches;
  for (int i = 0; i < LaunchList::kCapacity; ++i) launches.add();
  EXPECT_EQ(code_of([&] { launches.add(); }), ErrorCode::invalid_argument);
}

TEST_F(SessionTest, AMissTunesAndLaterCallsHit) {
  Session session(device_, options());
  const Choice first = launch(session);
  EXPECT_EQ(first.source, ChoiceSource::tuned);
  EXPECT_TRUE(first.winner->tuned);
  EXPECT_GT(first.winner->median_us, 0);
  EXPECT_EQ(first.winner->sizes[0], size_range(size_class(kSize)));
  const int compiles = device_->compiles();
  const int timings = device_->timings();
  for (int i = 0; i < 3; ++i) {
    const Choice later = launch(session);
    EXPECT_EQ(later.source, ChoiceSource::memory);
    EXPECT_EQ(later.winner, first.winner);
  }
  EXPECT_EQ(device_->compiles(), compiles);
  EXPECT_EQ(device_->timings(), timings);
  EXPECT_EQ(session.counters().tunings, 1u);
}

TEST_F(SessionTest, SizesOfOneClassShareAWinner) {
  Session session(device_, options());
  const Winner* winner = launch(session, 1000).winner;
  EXPECT_EQ(launch(session, 950).winner, winner);
  EXPECT_EQ(launch(session, 1100).winner, winner);
  EXPECT_NE(launch(session, 3000).winner, winner);
  EXPECT_EQ(session.counters().tunings, 2u);
}

TEST_F(SessionTest, ANewSessionFindsTheWinnerInTheFileAndCompilesNothing) {
  Winner tuned;
  {
    Session session(device_, options());
    tuned = *launch(session).winner;
  }
  auto other = std::make_shared<FakeDevice>();
  Session session(other, options());
  const Choice choice = launch(session);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_EQ(choice.winner->candidate, tuned.candidate);
  EXPECT_EQ(choice.winner->resources, tuned.resources);
  EXPECT_EQ(choice.winner->median_us, tuned.median_us);
  EXPECT_EQ(choice.winner->tuned_extents, tuned.tuned_extents);
  EXPECT_TRUE(choice.winner->tuned);
  EXPECT_EQ(other->compiles(), 0);
  EXPECT_EQ(other->timings(), 0);
  EXPECT_EQ(session.counters().cache_hits, 1u);
  EXPECT_EQ(session.counters().compiles, 0u);
  EXPECT_EQ(launch(session).source, ChoiceSource::memory);
}

TEST_F(SessionTest, WithoutAFileWinnersLiveAsLongAsTheSession) {
  SessionOptions without = options();
  without.cache_path.clear();
  for (int i = 0; i < 2; ++i) {
    Session session(device_, without);
    EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
    EXPECT_EQ(session.counters().cache_failures, 0u);
  }
}

TEST_F(SessionTest, HeuristicCompilesOnePolicyAndMeasuresNothing) {
  Session session(device_, options(MissPolicy::heuristic));
  const Choice choice = launch(session);
  EXPECT_EQ(choice.source, ChoiceSource::heuristic);
  EXPECT_FALSE(choice.winner->tuned);
  EXPECT_EQ(device_->compiles(), 1);
  EXPECT_EQ(device_->timings(), 0);
  EXPECT_EQ(launch(session).source, ChoiceSource::memory);
  EXPECT_EQ(session.counters().heuristics, 1u);

  Session later(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(launch(later).source, ChoiceSource::cache);
  EXPECT_EQ(device_->compiles(), 1);
}

TEST_F(SessionTest, ByDefaultAMissMeasuresNothingAndSaysOnceHowToTune) {
  std::vector<std::string> said;
  const SessionOptions usual{.cache_path = folder_ / "cache.sqlite",
                             .report_untuned = [&](std::string_view message) { said.emplace_back(message); }};
  for (int i = 1; i <= 2; ++i) {  // in the second session, the first one's choice is in the file
    Session session(device_, usual);
    launch(session);
    launch(session, 10 * kSize);
    ASSERT_EQ(said.size(), static_cast<std::size_t>(i));
    EXPECT_THAT(said.back(), Names("total", "n=1000", "Fake", "GPU", "Session::tune()"));
  }
  EXPECT_EQ(device_->timings(), 0);
  EXPECT_EQ(cache::Store(folder_ / "cache.sqlite").misses().size(), 2u);

  Session tuning(device_, options());
  launch(tuning);
  Session later(device_, usual);
  EXPECT_TRUE(launch(later).winner->tuned);
  EXPECT_EQ(said.size(), 2u);
}

// A program's own family is tuned by Session::tune(), so the advice that names the file needs one that is built in.
TEST_F(SessionTest, ACacheThatCannotBeUsedIsNotNamedInTheAdvice) {
  const ReduceSpec spec{.op = ReduceOp::sum, .dtype = DType::f32};
  const Problem problem = reduce_problem(spec, 1000, 16);
  std::ofstream(folder_ / "junk.sqlite") << "somebody's letter";
  for (const char* name : {"junk.sqlite", "cache.sqlite"}) {
    const SessionOptions usual{.on_miss = MissPolicy::error, .cache_path = folder_ / name};
    Session session(device_, usual);
    try {
      session.prepare(problem);
      FAIL() << name;
    } catch (const Error& error) {
      const std::string advice = std::string(error.what()).substr(std::string(error.what()).find("hone tune"));
      EXPECT_THAT(advice, Names("--op sum", "--device"));
      EXPECT_EQ(advice.find(name) == std::string::npos, name == std::string_view("junk.sqlite")) << advice;
    }
  }
}

TEST_F(SessionTest, AFirstChoiceThatIsWrongOrDoesNotCompileGivesWayToTheNext) {
  const Policy first = [&] {
    SessionOptions alone = options(MissPolicy::heuristic);
    alone.cache_path.clear();
    Session session(device_, alone);
    return launch(session).winner->candidate.policy;
  }();
  const std::string spelled = family_.space().to_string(first);
  for (const FakeKernel& bad :
       {FakeKernel{.is_wrong = true}, {.is_unsteady = true}, {.compile_error = "no"}, {.load_error = "no"}}) {
    device_->script = [&](std::string_view source) { return source == spelled ? bad : FakeKernel{}; };
    SessionOptions fresh = options(MissPolicy::heuristic);
    fresh.cache_path = TempFolder() / "cache.sqlite";
    Session session(device_, fresh);
    const Choice choice = launch(session);
    EXPECT_EQ(choice.source, ChoiceSource::heuristic);
    EXPECT_NE(choice.winner->candidate.policy, first);
    EXPECT_EQ(launch(session).source, ChoiceSource::memory);
  }
}

TEST_F(SessionTest, WhenTheFirstChoicesAreAllWrongTheCallSaysSoAndNothingIsStored) {
  device_->script = [](std::string_view) { return FakeKernel{.is_wrong = true}; };
  Session session(device_, options(MissPolicy::heuristic));
  std::string message;
  EXPECT_EQ(code_of([&] { launch(session); }, &message), ErrorCode::device_failed);
  EXPECT_THAT(message, Names("total", "n=1000", "threads=", "expected"));
  EXPECT_EQ(device_->compiles(), 3);
  device_->script = [](std::string_view) { return FakeKernel{}; };
  Session later(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(launch(later).source, ChoiceSource::heuristic);
}

TEST_F(SessionTest, ATuningSessionTunesWhatAnotherOnlyGuessed) {
  {
    Session guessing(device_, options(MissPolicy::heuristic));
    launch(guessing);
  }
  {
    Session tuning(device_, options());
    EXPECT_EQ(launch(tuning).source, ChoiceSource::tuned);
  }
  Session guessing(device_, options(MissPolicy::heuristic));
  const Choice choice = launch(guessing);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_TRUE(choice.winner->tuned);
}

TEST_F(SessionTest, ErrorPolicyIsNotServedByAnUntunedWinner) {
  EXPECT_EQ(Session(device_, options(MissPolicy::heuristic)).prepare(family_.problem(kSize)).source,
            ChoiceSource::heuristic);
  Session session(device_, options(MissPolicy::error));
  EXPECT_EQ(code_of([&] { launch(session); }), ErrorCode::not_tuned);
  EXPECT_EQ(Session(device_, options(MissPolicy::heuristic)).prepare(family_.problem(kSize)).source,
            ChoiceSource::cache) << "it is there";
}

TEST_F(SessionTest, CachesWithoutRoomAreRefused) {
  SessionOptions small = options();
  for (const std::int64_t bytes : {std::int64_t{-1}, std::int64_t{4096}, (std::int64_t{1} << 20) - 1}) {
    small.cache_max_bytes = bytes;
    std::string message;
    EXPECT_EQ(code_of([&] { Session(device_, small); }, &message), ErrorCode::invalid_argument);
    EXPECT_THAT(message, Names("cache_max_bytes", std::to_string(bytes), "1048576", "0"));
  }
}

TEST_F(SessionTest, ErrorPolicySaysWhatToDo) {
  Session session(device_, options(MissPolicy::error));
  std::string message;
  EXPECT_EQ(code_of([&] { launch(session); }, &message), ErrorCode::not_tuned);
  EXPECT_THAT(message, Names("total", "i32", "n=1000"));
  EXPECT_THAT(message, Names("Fake", "GPU"));
  EXPECT_THAT(message, Names("cache.sqlite"));
  EXPECT_THAT(message, HasSubstr("Session::tune()"));
  EXPECT_EQ(device_->compiles(), 0);
  Session(device_, options()).prepare(family_.problem(kSize));
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
}

TEST_F(SessionTest, PrepareMakesCallsHit) {
  Session session(device_, options());
  EXPECT_EQ(session.prepare(family_.problem(kSize)).source, ChoiceSource::tuned);
  EXPECT_EQ(session.prepare(family_.problem(kSize)).source, ChoiceSource::memory);
  EXPECT_EQ(launch(session).source, ChoiceSource::memory);
}

TEST_F(SessionTest, TuneReplacesWhatIsKnown) {
  Session session(device_, options());
  launch(session);
  device_->script = [](std::string_view source) {
    return FakeKernel{.us = source == "threads=256 work=4 finish=alone" ? 3.0 : 30.0};
  };
  const Tuning tuning = session.tune(family_.problem(kSize), {.budget = std::chrono::minutes(1)});
  ASSERT_TRUE(tuning.winner);
  const Choice choice = launch(session);
  EXPECT_EQ(choice.source, ChoiceSource::memory);
  EXPECT_EQ(choice.winner->candidate.policy, (Policy{256, 4, 0}));
  Session later(device_, options());
  EXPECT_EQ(launch(later).winner->candidate.policy, (Policy{256, 4, 0}));
}

TEST_F(SessionTest, AWinnerThatNeedsAWorkspaceGetsOne) {
  device_->script = [](std::string_view source) {
    return FakeKernel{.us = source.ends_with("joined") ? 2.0 : 30.0};
  };
  Session session(device_, options());
  EXPECT_EQ(launch(session).winner->candidate.policy[2], 1);
  const Stream stream = device_->create_stream();
  EXPECT_EQ(launch(session, kSize, stream).source, ChoiceSource::memory);
}

TEST_F(SessionTest, WhenNothingWorksItSaysWhy) {
  device_->script = [](std::string_view) { return FakeKernel{.is_wrong = true}; };
  Session session(device_, options());
  std::string message;
  EXPECT_EQ(code_of([&] { session.prepare(family_.problem(kSize)); }, &message), ErrorCode::device_failed);
  EXPECT_THAT(message, Names("expected"));
}

TEST_F(SessionTest, WhenNothingCompilesThatIsTheErrorAndIsNotTriedAgain) {
  device_->script = [](std::string_view) { return FakeKernel{.compile_error = "expected a ';'"}; };
  Session session(device_, options());
  std::string message;
  EXPECT_EQ(code_of([&] { session.prepare(family_.problem(kSize)); }, &message), ErrorCode::compile_failed);
  EXPECT_THAT(message, Names("compiles"));
  EXPECT_THAT(message, Names("expected", "';'"));
  const int compiles = device_->compiles();
  EXPECT_EQ(code_of([&] { session.prepare(family_.problem(kSize)); }), ErrorCode::compile_failed);
  EXPECT_EQ(device_->compiles(), compiles);
}

TEST_F(SessionTest, WithoutMemoryToMeasureInTheHeuristicServes) {
  Session session(device_, options());
  device_->memory_limit = 1000;
  EXPECT_EQ(launch(session).source, ChoiceSource::heuristic);
  const int compiles = device_->compiles();
  const int allocations = device_->allocations();
  EXPECT_EQ(launch(session).source, ChoiceSource::memory);
  EXPECT_EQ(device_->compiles(), compiles);
  EXPECT_EQ(device_->allocations(), allocations);  // not tried again on every call
}

}  // namespace
}  // namespace hone
