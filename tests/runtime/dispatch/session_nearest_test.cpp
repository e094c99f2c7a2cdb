// Tests of sessions with winners of other shapes, on a device that only pretends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hone/error.h>

#include "cache/store.h"
#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using test::Names;
using testing::IsEmpty;

/// Shapes of rows and columns; the policy that wins is that of `fastest_`.
class NearestShape : public FakeSessionTest {
 protected:
  void SetUp() override {
    FakeSessionTest::SetUp();
    family_ = TotalFamily({.extent_names = {"rows", "columns"}});
    device_->script = [this](std::string_view source) { return FakeKernel{.us = source == fastest_ ? 2.0 : 30.0}; };
  }

  Choice launch(Session& session, std::int64_t rows, std::int64_t columns, Stream stream = nullptr) {
    std::int64_t& out = *out_.as<std::int64_t>();
    out = -1;
    const std::array<void*, 2> buffers{in_.data(), &out};
    const Choice choice = session.launch(family_.problem(rows, columns), buffers, stream);
    EXPECT_EQ(out, rows * columns);
    return choice;
  }

  Candidate tune(std::int64_t rows, std::int64_t columns, std::string_view fastest) {
    fastest_ = fastest;
    Session session(device_, options());
    return session.prepare(family_.problem(rows, columns)).winner->candidate;
  }

  std::vector<Extents> missed() const {
    std::vector<Extents> extents;
    for (const cache::StoredMiss& miss : cache::Store(folder_ / "cache.sqlite").misses())
      extents.push_back(miss.miss.extents);
    return extents;
  }

  static constexpr std::string_view kA = "threads=256 work=4 finish=alone";
  static constexpr std::string_view kB = "threads=128 work=2 finish=joined";
  std::string_view fastest_ = kA;
};

TEST_F(NearestShape, ServesAMissThatIsNotTuned) {
  const Candidate tuned = tune(64, 64, kA);
  const int compiles = device_->compiles();
  {
    SessionOptions telling = options(MissPolicy::heuristic);
    std::string said;
    telling.report_untuned = [&](std::string_view message) { said = message; };
    Session session(device_, telling);
    const Choice choice = launch(session, 128, 64);
    EXPECT_THAT(said, Names("nearest class", "tune"));
    EXPECT_EQ(choice.source, ChoiceSource::nearest);
    EXPECT_EQ(choice.winner->candidate, tuned);
    EXPECT_FALSE(choice.winner->tuned);
    EXPECT_TRUE(choice.winner->is_from_nearest());
    EXPECT_EQ(choice.winner->tuned_extents, (Extents{64, 64, 1}));
    EXPECT_EQ(choice.winner->sizes, size_ranges({128, 64, 1}));
    EXPECT_EQ(launch(session, 128, 64).source, ChoiceSource::memory);
    EXPECT_EQ(session.counters().nearest, 1u);
    EXPECT_EQ(session.counters().heuristics, 0u);
  }
  EXPECT_EQ(device_->compiles(), compiles);  // its code is in the file
  EXPECT_THAT(missed(), ElementsAre(Extents{128, 64, 1}));
}

TEST_F(NearestShape, IsStoredAsUntunedAndFoundAgain) {
  const Candidate tuned = tune(64, 64, kA);
  Session(device_, options(MissPolicy::heuristic)).prepare(family_.problem(128, 64));
  Session later(device_, options(MissPolicy::heuristic));
  const Choice choice = launch(later, 128, 64);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_EQ(choice.winner->candidate, tuned);
  EXPECT_TRUE(choice.winner->is_from_nearest());
  Session tuning(device_, options());
  EXPECT_EQ(launch(tuning, 128, 64).source, ChoiceSource::tuned);
}

TEST_F(NearestShape, GoesBeforeWhatTheModelChoseEarlier) {
  Session(device_, options(MissPolicy::heuristic)).prepare(family_.problem(128, 64));
  const Candidate tuned = tune(64, 64, kB);
  Session session(device_, options(MissPolicy::heuristic));
  const Choice choice = launch(session, 128, 64);
  EXPECT_EQ(choice.source, ChoiceSource::nearest);
  EXPECT_EQ(choice.winner->candidate, tuned);
}

TEST_F(NearestShape, IsTheNearestInAllExtents) {
  const Candidate far = tune(16, 64, kB);
  const Candidate near = tune(64, 256, kA);
  ASSERT_NE(far, near);
  Session session(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(launch(session, 64, 128).winner->candidate, near);
  EXPECT_EQ(launch(session, 16, 32).winner->candidate, far);
  EXPECT_EQ(launch(session, 32, 256).winner->candidate, near) << "in rows alone the other would be as near";
}

TEST_F(NearestShape, IsNoneBeyondTwoOctavesAndTallIsNotFlat) {
  tune(64, 64, kA);
  tune(1024, 1, kB);
  Session session(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(launch(session, 256, 64).source, ChoiceSource::nearest);
  EXPECT_EQ(launch(session, 600, 64).source, ChoiceSource::heuristic);
  EXPECT_EQ(launch(session, 256, 128).source, ChoiceSource::heuristic) << "√5 octaves";
  EXPECT_EQ(launch(session, 1, 1024).source, ChoiceSource::heuristic);
}

TEST_F(NearestShape, MustSuitTheFamilyThere) {
  tune(64, 64, kA);
  const Candidate other = tune(64, 16, kB);
  family_ =
      TotalFamily({.extent_names = {"rows", "columns"}, .rejects = [](const ProblemClass& rows, const Policy& policy) {
                     return rows.sizes()[1].last < 64 && policy[0] == 256 ? "too wide for such rows" : "";
                   }});
  Session session(device_, options(MissPolicy::heuristic));
  const Choice choice = launch(session, 64, 32);
  EXPECT_EQ(choice.source, ChoiceSource::nearest);
  EXPECT_EQ(choice.winner->candidate, other);
}

TEST_F(NearestShape, IsNotWhatTheModelExpectsToFallBehind) {
  // A single block is the fastest that was measured at 2^12 elements, and has a quarter of the SMs' work at 2^14.
  family_ = TotalFamily({.alone_is_one_block = true, .extent_names = {"rows", "columns"}});
  const Candidate single = tune(64, 64, kA);
  ASSERT_EQ(single.geometry.max_blocks, 1);
  Session session(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(launch(session, 64, 128).winner->candidate, single);
  EXPECT_EQ(launch(session, 256, 64).source, ChoiceSource::heuristic);
}

TEST_F(NearestShape, IsFoundInMemoryWithoutAFile) {
  SessionOptions without = options(MissPolicy::heuristic);
  without.cache_path.clear();
  Session session(device_, without);
  const Tuning tuning = session.tune(family_.problem(64, 64), {.budget = std::chrono::minutes(1)});
  ASSERT_TRUE(tuning.winner);
  const Choice choice = launch(session, 64, 128);
  EXPECT_EQ(choice.source, ChoiceSource::nearest);
  EXPECT_EQ(choice.winner->candidate, tuning.trials[*tuning.winner].candidate);
}

TEST_F(NearestShape, ServesWhereThereIsNoCompiler) {
  tune(64, 64, kA);
  device_->compiler = "";
  Session session(device_, options(MissPolicy::heuristic));
  EXPECT_EQ(launch(session, 64, 128).source, ChoiceSource::nearest);
  EXPECT_THROW(launch(session, 1, 128), Error);
}

TEST_F(NearestShape, ServesACaptureUntilTheNextCallTunes) {
  tune(64, 64, kA);
  Session session(device_, options());
  const Stream stream = device_->create_stream();
  device_->begin_capture(stream, 1);
  const Choice captured = launch(session, 64, 128, stream);
  device_->end_capture(stream);
  EXPECT_EQ(captured.source, ChoiceSource::nearest) << "of the stream's winners: nothing was tuned for graphs";
  EXPECT_EQ(captured.winner->launch_context, LaunchContext::stream);
  EXPECT_EQ(launch(session, 64, 128).source, ChoiceSource::tuned);
}

TEST_F(NearestShape, IsNothingForAPolicyThatReportsMisses) {
  tune(64, 64, kA);
  Session session(device_, options(MissPolicy::error));
  try {
    launch(session, 64, 128);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_tuned);
    EXPECT_THAT(error.what(), HasSubstr("Session::tune()"));
  }
  EXPECT_THAT(missed(), IsEmpty());
}

TEST_F(NearestShape, IsWhereATuningOfAnotherProcessBegins) {
  const Candidate known = tune(64, 64, "threads=128 work=2 finish=alone");
  fastest_ = "none: all are alike, and ties go to what serves a neighbour";
  const auto winner_of = [&](const SessionOptions& each) {
    return Session(device_, each).prepare(family_.problem(64, 128)).winner->candidate.policy;
  };
  SessionOptions without = options();
  without.cache_path.clear();
  EXPECT_NE(winner_of(without), known.policy);
  EXPECT_EQ(winner_of(options()), known.policy);
}

}  // namespace
}  // namespace hone
