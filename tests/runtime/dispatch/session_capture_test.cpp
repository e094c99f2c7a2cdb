// Sessions under stream capture, and with Plans, on a device that only pretends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hone/error.h>

#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

std::function<FakeKernel(std::string_view)> joined_is_fastest() {
  return [](std::string_view source) { return FakeKernel{.us = source.ends_with("joined") ? 2.0 : 30.0}; };
}

const Policy kFastInStream{128, 1, 0};
const Policy kFastInGraph{256, 4, 0};

std::function<FakeKernel(std::string_view)> contexts_differ() {
  return [](std::string_view source) {
    if (source == "threads=128 work=1 finish=alone") return FakeKernel{.us = 5, .graph_us = 9};
    if (source == "threads=256 work=4 finish=alone") return FakeKernel{.us = 8, .graph_us = 3};
    return FakeKernel{.us = 20};
  };
}

/// A stream under capture for as long as this lives.
class Capturing {
 public:
  Capturing(FakeDevice& device, std::uint64_t id) : device_(device), stream_(device.create_stream()) {
    device_.begin_capture(stream_, id);
  }
  ~Capturing() { device_.end_capture(stream_); }
  Stream stream() const { return stream_; }

 private:
  FakeDevice& device_;
  Stream stream_;
};

TEST_F(FakeSessionTest, StreamAndGraphHaveWinnersOfTheirOwn) {
  device_->script = contexts_differ();
  {
    Session session(device_, options());
    EXPECT_EQ(session.prepare(family_.problem(kSize)).winner->candidate.policy, kFastInStream);
    EXPECT_EQ(device_->captures(), 0);
    const Choice in_graph = session.prepare(graph_problem());
    EXPECT_EQ(in_graph.source, ChoiceSource::tuned);
    EXPECT_EQ(in_graph.winner->candidate.policy, kFastInGraph);
    EXPECT_EQ(in_graph.winner->launch_context, LaunchContext::graph);
    EXPECT_NEAR(in_graph.winner->median_us, 3, 1e-9);
    EXPECT_GT(device_->captures(), 0);
    const Capturing capture(*device_, 1);
    const Choice captured = launch(session, kSize, capture.stream());
    EXPECT_EQ(captured.source, ChoiceSource::memory);
    EXPECT_EQ(captured.winner, in_graph.winner);
    EXPECT_EQ(launch(session).winner->candidate.policy, kFastInStream);
  }
  Session session(device_, options());  // both are in the file
  const Capturing capture(*device_, 2);
  const int allocations = device_->allocations();
  const Choice captured = launch(session, kSize, capture.stream());
  EXPECT_EQ(captured.source, ChoiceSource::cache);
  EXPECT_EQ(captured.winner->candidate.policy, kFastInGraph);
  EXPECT_EQ(captured.winner->launch_context, LaunchContext::graph);
  EXPECT_EQ(launch(session).winner->candidate.policy, kFastInStream);
  EXPECT_EQ(device_->allocations(), allocations);
}

TEST_F(FakeSessionTest, ACaptureIsLentTheStreamsWinnerUntilTheGraphHasItsOwn) {
  device_->script = contexts_differ();
  Session session(device_, options());
  session.prepare(family_.problem(kSize));
  const int timings = device_->timings();
  {
    const Capturing capture(*device_, 1);
    const Choice lent = launch(session, kSize, capture.stream());
    EXPECT_EQ(lent.source, ChoiceSource::memory);
    EXPECT_EQ(lent.winner->candidate.policy, kFastInStream);
    EXPECT_TRUE(lent.winner->tuned);
    EXPECT_EQ(lent.winner->launch_context, LaunchContext::stream);
    EXPECT_EQ(launch(session, kSize, capture.stream()).winner, lent.winner);
  }
  EXPECT_EQ(device_->timings(), timings);
  EXPECT_EQ(session.prepare(graph_problem()).source, ChoiceSource::tuned);
  const Capturing capture(*device_, 2);
  EXPECT_EQ(launch(session, kSize, capture.stream()).winner->candidate.policy, kFastInGraph);
}

TEST_F(FakeSessionTest, AGraphsOwnWinnerIsNotReplacedByALaterOneOfTheStream) {
  device_->script = contexts_differ();
  Session session(device_, options());
  session.prepare(graph_problem());
  session.prepare(family_.problem(kSize));
  const Capturing capture(*device_, 1);
  EXPECT_EQ(launch(session, kSize, capture.stream()).winner->candidate.policy, kFastInGraph);
}

TEST_F(FakeSessionTest, WhereThePolicyDoesNotTuneAGraphIsLentTheStreamsWinner) {
  device_->script = contexts_differ();
  Session(device_, options()).prepare(family_.problem(kSize));
  Session session(device_, options(MissPolicy::heuristic));
  const Choice lent = session.prepare(graph_problem());
  EXPECT_EQ(lent.source, ChoiceSource::cache);
  EXPECT_EQ(lent.winner->candidate.policy, kFastInStream);
  EXPECT_EQ(session.counters().heuristics, 0u);
  EXPECT_EQ(session.tune(graph_problem(), {.budget = std::chrono::minutes(1)}).problem.launch_context,
            LaunchContext::graph);
  EXPECT_EQ(session.prepare(graph_problem()).winner->candidate.policy, kFastInGraph);
}

TEST_F(FakeSessionTest, ThePolicyErrorReportsAGraphProblemButServesACapture) {
  Session(device_, options()).prepare(family_.problem(kSize));
  Session session(device_, options(MissPolicy::error));
  try {
    session.prepare(graph_problem());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_tuned);
    EXPECT_THAT(error.what(), Names("graph"));
    EXPECT_THAT(error.what(), Names("graph"));
  }
  const Capturing capture(*device_, 1);
  EXPECT_TRUE(launch(session, kSize, capture.stream()).winner->tuned);
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
  const Choice lent = launch(session, kSize, stream);
  EXPECT_EQ(lent.winner->candidate, later.winner->candidate);
  EXPECT_TRUE(lent.winner->tuned);
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
      EXPECT_THAT(error.what(), Names(why));
    }
  };
  expect_refused(family_.problem(plan.winner().sizes[0].last + 1), "size class of n is 1117");
  expect_refused(family_.problem(plan.winner().sizes[0].first - 1), "not 940 … 1116");
  expect_refused(family_.problem(-1), "size class of n");
  const TotalFamily other;
  expect_refused(other.problem(kSize), "another one with the name total");
  Problem misaligned = family_.problem(kSize);
  misaligned.alignment = 4;
  expect_refused(misaligned, "the alignment is 4 bytes, not 16 bytes");
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

}  // namespace
}  // namespace hone
