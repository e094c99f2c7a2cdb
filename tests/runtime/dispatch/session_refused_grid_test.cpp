// Tests of winners whose blocks have to be resident at once, on a device that has no room for them.
#include <hone/session.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include <hone/error.h>

#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using test::Names;

constexpr int kWork = 1;  ///< the parameter by its place

class RefusedGridTest : public FakeSessionTest {
 protected:
  RefusedGridTest() { device_->script = fastest_where("work=4"); }

  /// Policies with work=4, whose blocks wait for each other, are the fastest.
  static std::function<FakeKernel(std::string_view)> fastest_where(std::string_view text) {
    return [text](std::string_view source) {
      return FakeKernel{.us = source.find(text) != source.npos               ? 5.0
                              : source.find("work=2") != std::string_view::npos ? 8.0
                                                                              : 12.0};
    };
  }

  void SetUp() override {
    FakeSessionTest::SetUp();
    family_ = TotalFamily({.cooperative_work = 4});
  }

  SessionOptions telling(MissPolicy on_miss = MissPolicy::heuristic) {
    SessionOptions result = options(on_miss);
    result.report_refused_grid = [this](std::string_view message) { said_.emplace_back(message); };
    return result;
  }

  static bool is_cooperative(const Choice& choice) { return choice.winner->candidate.policy[kWork] == 4; }

  /// Stores a winner that is cooperative.
  void tune() {
    Session session(device_, options());
    ASSERT_TRUE(is_cooperative(launch(session)));
  }

  std::vector<std::string> said_;
};

TEST_F(RefusedGridTest, ALaunchThatIsRefusedIsServedByTheNextBestOfTheStoredTuning) {
  tune();
  device_->has_room = false;
  Session session(device_, telling());
  const int timings = device_->timings();
  const Choice first = launch(session);
  EXPECT_EQ(first.source, ChoiceSource::cache);
  EXPECT_EQ(first.winner->candidate.policy[kWork], 2);
  EXPECT_TRUE(first.winner->tuned);
  EXPECT_NEAR(first.winner->median_us, 8, 1);
  for (int i = 0; i < 3; ++i) {
    const Choice later = launch(session);
    EXPECT_EQ(later.source, ChoiceSource::memory);
    EXPECT_EQ(later.winner, first.winner);
  }
  EXPECT_EQ(device_->refusals(), 1);
  EXPECT_EQ(device_->timings(), timings);
  EXPECT_EQ(session.counters().refused_grids, 1u);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], Names("work=4", "n=1000", "no room for 8 blocks", "slower", "MPS"));
}

TEST_F(RefusedGridTest, WhatServesInsteadIsNotStored) {
  tune();
  device_->has_room = false;
  {
    Session session(device_, telling());
    EXPECT_FALSE(is_cooperative(launch(session)));
  }
  device_->has_room = true;
  Session session(device_, telling());
  EXPECT_TRUE(is_cooperative(launch(session)));
}

TEST_F(RefusedGridTest, WithoutAStoredTuningTheModelChoosesAmongTheOthers) {
  SessionOptions without = telling(MissPolicy::tune);
  without.cache_path.clear();
  Session session(device_, without);
  ASSERT_TRUE(is_cooperative(launch(session)));
  device_->has_room = false;
  const Choice choice = launch(session);
  EXPECT_FALSE(is_cooperative(choice));
  EXPECT_EQ(choice.source, ChoiceSource::heuristic);
  EXPECT_FALSE(choice.winner->tuned);
  EXPECT_EQ(launch(session).winner, choice.winner) << "it is not tuned anew, to be refused again";
  EXPECT_EQ(device_->refusals(), 1);
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(RefusedGridTest, AnUntunedCallGoesOnWithWhatIsLeftWhenTheFirstChoicesAreRefused) {
  // The first choices of the model: so many that fail for another reason would fail the call.
  family_ = TotalFamily({.space = ParameterSpace{{{"threads", {128, 256, 512, 1024}}, {"work", {1, 4}},
                                                  {"finish", {0}, {"alone"}}}},
                         .cooperative_work = 4});
  device_->has_room = false;
  Session session(device_, telling());
  const Choice choice = launch(session);
  EXPECT_EQ(choice.source, ChoiceSource::heuristic);
  EXPECT_FALSE(is_cooperative(choice));
  EXPECT_EQ(device_->refusals(), 1);
  EXPECT_EQ(session.counters().refused_grids, 1u);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], Names("work=4", "no room for"));
  device_->has_room = true;
  Session with_room(device_, telling());
  EXPECT_TRUE(is_cooperative(launch(with_room))) << "what serves instead is not stored";
}

TEST_F(RefusedGridTest, AnUntunedCallThatNothingElseServesFailsUntilThereIsRoom) {
  family_ = TotalFamily({.space = ParameterSpace{{{"threads", {128, 256}}, {"work", {4}}, {"finish", {0}, {"alone"}}}},
                         .cooperative_work = 4});
  device_->has_room = false;
  Session session(device_, telling());
  for (int i = 0; i < 2; ++i) {
    try {
      launch(session);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::device_failed);
      EXPECT_THAT(error.what(), Names("no room for", "n=1000", "all SMs"));
    }
  }
}

TEST_F(RefusedGridTest, AfterARefusalNoOtherClassGetsSuchAWinner) {
  tune();
  {
    Session session(device_, options());
    ASSERT_TRUE(is_cooperative(launch(session, 10 * kSize)));
  }
  device_->has_room = false;
  Session session(device_, telling());
  EXPECT_FALSE(is_cooperative(launch(session)));
  EXPECT_FALSE(is_cooperative(launch(session, 10 * kSize)));  // stored
  EXPECT_FALSE(is_cooperative(launch(session, 3 * kSize)));   // lent
  EXPECT_FALSE(is_cooperative(launch(session, 90 * kSize)));  // chosen by the model
  EXPECT_EQ(device_->refusals(), 1);
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(RefusedGridTest, ACapturedLaunchThatIsRefusedIsServedWithoutTuningOrAllocating) {
  tune();
  device_->has_room = false;
  SessionOptions tuning = telling(MissPolicy::tune);
  Session session(device_, tuning);
  const Stream stream = device_->create_stream();
  const int timings = device_->timings(), allocations = device_->allocations();
  device_->begin_capture(stream, 1);
  const Choice captured = launch(session, kSize, stream);
  device_->end_capture(stream);
  EXPECT_FALSE(is_cooperative(captured));
  EXPECT_EQ(device_->timings(), timings);
  EXPECT_EQ(device_->allocations(), allocations);
  device_->begin_capture(stream, 2);
  EXPECT_EQ(launch(session, kSize, stream).winner, captured.winner);
  device_->end_capture(stream);
  EXPECT_EQ(device_->refusals(), 1);
  EXPECT_FALSE(is_cooperative(launch(session))) << "the stored winner of the stream, too";
  device_->destroy_stream(stream);
}

TEST_F(RefusedGridTest, APlanThatIsRefusedLaunchesAnotherOneFromThenOn) {
  tune();
  Session session(device_, telling());
  const Plan plan = session.make_plan(family_.problem(kSize));
  ASSERT_EQ(plan.winner().candidate.policy[kWork], 4);
  device_->has_room = false;
  std::int64_t& out = *out_.as<std::int64_t>();
  for (int i = 0; i < 3; ++i) {
    out = -1;
    plan.launch(family_.problem(kSize), std::array<void*, 2>{in_.data(), &out}, nullptr);
    EXPECT_EQ(out, kSize);
    EXPECT_EQ(plan.winner().candidate.policy[kWork], 2);
  }
  EXPECT_FALSE(is_cooperative(launch(session)));
  EXPECT_EQ(device_->refusals(), 1);
}

TEST_F(RefusedGridTest, AStoredWinnerIsNotBoundWhereTheContextHasTooFewSms) {
  tune();
  device_->context_sms = 1;  // times 4 blocks, for a grid of 8
  Session session(device_, telling());
  EXPECT_FALSE(is_cooperative(launch(session)));
  EXPECT_EQ(device_->refusals(), 0);
  EXPECT_EQ(session.counters().refused_grids, 1u);
  EXPECT_EQ(session.counters().cache_rejects, 1u);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], Names("work=4", "8 blocks", "1 SMs"));

  device_->context_sms = 2;
  Session with_room(device_, telling());
  EXPECT_TRUE(is_cooperative(launch(with_room)));
}

TEST_F(RefusedGridTest, ATuningMeasuresNoGridThatIsNotResidentAndLeavesOutWhatIsRefused) {
  device_->context_sms = 1;
  {
    Session session(device_, telling(MissPolicy::tune));
    EXPECT_FALSE(is_cooperative(launch(session)));
    EXPECT_EQ(device_->refusals(), 0);
  }
  device_->context_sms = 0;
  device_->has_room = false;
  Session session(device_, telling(MissPolicy::tune));
  EXPECT_FALSE(is_cooperative(launch(session, 10 * kSize)));
  EXPECT_GT(device_->refusals(), 0);
  EXPECT_THAT(said_, IsEmpty()) << "nothing was to serve a call";
}

TEST_F(RefusedGridTest, APinnedSessionKeepsItsWinnerAndSaysSo) {
  tune();
  Session session(device_, telling());
  launch(session);
  session.pin();
  device_->has_room = false;
  try {
    launch(session);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_THAT(error.what(), Names("no room for 8 blocks", "pinned", "pin()"));
  }
  device_->has_room = true;
  EXPECT_TRUE(is_cooperative(launch(session)));
}

TEST_F(RefusedGridTest, WhereAMissIsAnErrorARefusalIsOne) {
  tune();
  device_->has_room = false;
  Session session(device_, telling(MissPolicy::error));
  for (int i = 0; i < 2; ++i) {
    try {
      launch(session);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_tuned);
    }
  }
  EXPECT_THAT(said_, SizeIs(1));
}

TEST_F(RefusedGridTest, WithoutAnotherPolicyTheRefusalIsTheError) {
  family_ = TotalFamily({.space = ParameterSpace{{{"threads", {128}}, {"work", {4}}, {"finish", {0}, {"alone"}}}},
                         .cooperative_work = 4});
  Session session(device_, telling());
  ASSERT_TRUE(is_cooperative(launch(session)));
  device_->has_room = false;
  try {
    launch(session);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_THAT(error.what(), Names("no room for 8 blocks", "no policy whose blocks do not wait", "all SMs"));
  }
}

TEST_F(RefusedGridTest, ALaterLaunchOfACallThatIsRefusedFailsTheCall) {
  family_ = TotalFamily({.space = ParameterSpace{{{"threads", {128}}, {"work", {1, 4}}, {"finish", {1}, {"joined"}}}},
                         .cooperative_work = 4,
                         .cooperative_launch = 1});
  Session session(device_, telling(MissPolicy::tune));
  ASSERT_TRUE(is_cooperative(launch(session)));
  device_->has_room = false;
  EXPECT_THROW(launch(session), Error) << "the first launch may have overwritten what the call reads";
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(RefusedGridTest, OtherFailuresOfALaunchStayFailures) {
  tune();
  Session session(device_, telling());
  launch(session);
  const int launched = device_->launches().at("threads=128 work=4 finish=alone");
  device_->script = [&](std::string_view) { return FakeKernel{.fails_at_launch = launched + 1}; };
  EXPECT_THROW(launch(session), Error);
  EXPECT_EQ(session.counters().refused_grids, 0u);
}

}  // namespace
}  // namespace hone
