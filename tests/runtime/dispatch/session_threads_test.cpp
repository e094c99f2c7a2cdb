// Sessions that many threads call at once, on a device that only pretends.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/runtime/support/session_fixture.h"

namespace hone {
namespace {

using SessionThreadsTest = FakeSessionTest;

TEST_F(SessionThreadsTest, ManyThreadsWithOneColdProblemTuneOnce) {
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

TEST_F(SessionThreadsTest, ThreadsThatShareAStreamDoNotMixTheirTwoLaunches) {
  device_->script = [](std::string_view policy) { return FakeKernel{.us = policy.ends_with("joined") ? 2.0 : 30.0}; };
  Session session(device_, options());
  session.prepare(family_.problem(kSize));
  ASSERT_EQ(session.prepare(family_.problem(kSize)).winner->candidate.policy[2], 1);
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

TEST_F(SessionThreadsTest, ThreadsThatAreRefusedAGridAtOnceReplaceTheWinnerOnce) {
  family_ = TotalFamily({.cooperative_work = 4});
  device_->script = [](std::string_view policy) {
    return FakeKernel{.us = policy.find("work=4") != policy.npos ? 5.0 : 9.0};
  };
  Session session(device_, options());
  ASSERT_EQ(session.prepare(family_.problem(kSize)).winner->candidate.policy[1], 4);
  device_->has_room = false;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        const Stream stream = device_->create_stream();
        const Plan plan = session.make_plan(family_.problem(kSize));
        const DeviceBuffer out(device_, sizeof(std::int64_t));
        const std::array<void*, 2> buffers{in_.data(), out.data()};
        for (int i = 0; i < 50; ++i) {
          *out.as<std::int64_t>() = -1;
          if ((i + t) % 2 == 0) session.launch(family_.problem(kSize), buffers, stream);
          else plan.launch(family_.problem(kSize), buffers, stream);
          ASSERT_EQ(*out.as<std::int64_t>(), kSize);
        }
      });
  }
  EXPECT_EQ(session.counters().refused_grids, 1u);
  EXPECT_NE(session.prepare(family_.problem(kSize)).winner->candidate.policy[1], 4);
}

TEST_F(SessionThreadsTest, ThreadsMayUseManyProblemsAtOnce) {
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

TEST_F(SessionThreadsTest, HitsGoOnWhileOtherProblemsAreInstalled) {
  Session session(device_, {.on_miss = MissPolicy::heuristic, .cache_path = {}});
  const Winner* const winner = session.prepare(family_.problem(kSize)).winner;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&](const std::stop_token& stop) {
      const DeviceBuffer out(device_, sizeof(std::int64_t));
      const std::array<void*, 2> buffers{in_.data(), out.data()};
      while (!stop.stop_requested()) {
        const Choice choice = session.launch(family_.problem(kSize), buffers, nullptr);
        ASSERT_EQ(choice.source, ChoiceSource::memory);
        ASSERT_EQ(choice.winner, winner);
        // Two threads that never pause keep the third from the mutexes of a miss: minutes under ThreadSanitizer.
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  // Small problems of as many classes as make the table of plans grow twice.
  constexpr std::int64_t kMostElements = std::int64_t{1} << 12;
  for (const std::uint32_t alignment : {4u, kMaxAlignment})
    for (std::int64_t columns = 2; columns < kMostElements; columns *= 2)
      for (std::int64_t rows = 2; rows * columns <= kMostElements; rows *= 2) {
        Problem problem = family_.problem(rows, columns);
        problem.alignment = alignment;
        session.prepare(problem);
      }
  EXPECT_GT(session.counters().heuristics, 128u);
}

}  // namespace
}  // namespace hone
