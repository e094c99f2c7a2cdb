// Sessions under stream capture, with Plans, and from many threads, on a device that only pretends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <hone/error.h>

#include "tests/runtime/support/session_fixture.h"

namespace hone {
namespace {

using testing::HasSubstr;

std::function<FakeKernel(std::string_view)> joined_is_fastest() {
  return [](std::string_view source) { return FakeKernel{.us = source.ends_with("joined") ? 2.0 : 30.0}; };
}

TEST_F(FakeSessionTest, DuringCaptureAColdProblemGetsTheHeuristicAndLaterATunedWinner) {
  device_->script = joined_is_fastest();
  Session session(device_, options());
  const Stream stream = device_->create_stream();
  device_->begin_capture(stream, 1);
  const Choice captured = launch(session, kSize, stream);
  EXPECT_EQ(captured.source, ChoiceSource::heuristic);
  EXPECT_EQ(launch(session, kSize, stream).source, ChoiceSource::memory);
  device_->end_capture(stream);
  EXPECT_EQ(device_->timings(), 0);

  const Choice later = launch(session, kSize, stream);
  EXPECT_EQ(later.source, ChoiceSource::tuned);
  EXPECT_NE(later.winner, captured.winner);
  EXPECT_FALSE(captured.winner->tuned);  // still valid for the graph
  device_->begin_capture(stream, 2);
  EXPECT_EQ(launch(session, kSize, stream).winner, later.winner);
}

TEST_F(FakeSessionTest, DuringCaptureAStoredWinnerServes) {
  Session(device_, options()).prepare(family_.problem(kSize));
  Session session(device_, options());
  const Stream stream = device_->create_stream();
  device_->begin_capture(stream, 1);
  const int allocations = device_->allocations();
  const Choice choice = launch(session, kSize, stream);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_TRUE(choice.winner->tuned);
  EXPECT_EQ(device_->allocations(), allocations);
}

TEST_F(FakeSessionTest, APlanLaunchesWithinItsRangeAlone) {
  Session session(device_, options());
  const Plan plan = session.make_plan(family_.problem(kSize));
  EXPECT_EQ(plan.winner().sizes[0], size_range(size_class(kSize)));
  const std::array<void*, 2> buffers{in_.data(), out_.data()};
  for (std::int64_t n : {plan.winner().sizes[0].first, kSize, plan.winner().sizes[0].last}) {
    plan.launch(family_.problem(n), buffers, nullptr);
    EXPECT_EQ(*out_.as<std::int64_t>(), n);
  }
  const auto expect_refused = [&](const Problem& problem, const char* why) {
    try {
      plan.launch(problem, buffers, nullptr);
      ADD_FAILURE() << why;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  };
  expect_refused(family_.problem(plan.winner().sizes[0].last + 1), "is outside of");
  expect_refused(family_.problem(plan.winner().sizes[0].first - 1), "is outside of");
  expect_refused(family_.problem(-1), "is outside of");
  const TotalFamily other;
  expect_refused(other.problem(kSize), "another kind of problem");
  Problem misaligned = family_.problem(kSize);
  misaligned.alignment = 4;
  expect_refused(misaligned, "aligned to 4 bytes only");
}

TEST_F(FakeSessionTest, PlansHaveWorkspacesOfTheirOwn) {
  device_->script = joined_is_fastest();
  Session session(device_, options());
  const std::size_t before = device_->live_allocations();
  Plan one = session.make_plan(family_.problem(kSize));
  const std::size_t with_one = device_->live_allocations();
  {
    const Plan other = session.make_plan(family_.problem(kSize));
    EXPECT_EQ(device_->live_allocations(), with_one + 1);
    const Plan moved = std::move(one);
    EXPECT_EQ(device_->live_allocations(), with_one + 1);
  }
  EXPECT_EQ(device_->live_allocations(), before);
}

TEST_F(FakeSessionTest, ManyThreadsWithOneColdProblemTuneOnce) {
  Session session(device_, options());
  constexpr int kThreads = 8;
  std::vector<ChoiceSource> sources(kThreads);
  {
    std::vector<std::jthread> threads;
    for (ChoiceSource& source : sources)
      threads.emplace_back([&] { source = session.prepare(family_.problem(kSize)).source; });
  }
  EXPECT_EQ(std::count(sources.begin(), sources.end(), ChoiceSource::tuned), 1);
  EXPECT_EQ(std::count(sources.begin(), sources.end(), ChoiceSource::memory), kThreads - 1);
  EXPECT_EQ(session.counters().tunings, 1u);
  EXPECT_EQ(device_->compiles(), 12);
}

TEST_F(FakeSessionTest, ThreadsThatShareAStreamDoNotMixTheirTwoLaunches) {
  device_->script = joined_is_fastest();
  Session session(device_, options());
  session.prepare(family_.problem(kSize));
  ASSERT_EQ(session.prepare(family_.problem(kSize)).winner->candidate.variant[2], 1);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const DeviceBuffer out(device_, sizeof(std::int64_t));
      const std::array<void*, 2> buffers{in_.data(), out.data()};
      for (int i = 0; i < 500; ++i) {
        const std::int64_t n = 1000 + t;
        session.launch(family_.problem(n), buffers, nullptr);
        ASSERT_EQ(*out.as<std::int64_t>(), n);
      }
    });
}

TEST_F(FakeSessionTest, ThreadsMayUseManyProblemsAtOnce) {
  Session session(device_, options(MissPolicy::heuristic));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const DeviceBuffer out(device_, sizeof(std::int64_t));
      const std::array<void*, 2> buffers{in_.data(), out.data()};
      const Stream stream = device_->create_stream();
      for (std::int64_t n = 1; n < kMost; n = n * 3 / 2 + 1) {
        session.launch(family_.problem(n), buffers, stream);
        ASSERT_EQ(*out.as<std::int64_t>(), n);
      }
    });
}

}  // namespace
}  // namespace hone
