// Sessions of several processes that miss the same problem.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <future>
#include <thread>
#include <utility>

#include <hone/error.h>

#include "cache/store.h"
#include "tests/runtime/support/session_fixture.h"

namespace hone {
namespace {

using namespace std::chrono_literals;

class SessionClaimsTest : public FakeSessionTest {
 protected:
  /// The claim on the class of kSize, as another process holds it: once a session has stored its winner, the claim of
  /// the same key is taken and the winner is removed.
  cache::KeyRecord key_of_class() {
    Session(device_, options()).prepare(family_.problem(kSize));
    const cache::KeyRecord key = cache::Store(file_).winners().at(0).key;
    std::filesystem::remove(file_);
    return key;
  }
  void claim(const cache::KeyRecord& key, std::chrono::milliseconds lease) {
    ASSERT_EQ(cache::Store(file_).claim(key, nullptr, "another", lease, 20s), cache::ClaimState::taken);
  }
  /// Publishes what another process has found, tuned or not compared within 5 s.
  void publish_as_owner(const cache::KeyRecord& key, bool is_tuned) {
    SessionOptions alone = options();
    alone.cache_path = folder_ / "elsewhere.sqlite";
    Session(std::make_shared<FakeDevice>(), alone).prepare(family_.problem(kSize));
    const cache::Store source(alone.cache_path);
    const cache::StoredWinner winner = source.winners().at(0);
    const cache::Query query{.device = key.device, .toolchain = key.toolchain, .family = key.problem.family,
                             .operation = key.problem.operation, .dtype = key.problem.dtype,
                             .numerics = key.problem.numerics, .launch_context = key.problem.launch_context,
                             .alignment = key.problem.alignment, .extents = {kSize, 1, 1}};
    cache::Publication publication{.key = winner.key, .winner = winner.winner, .binary = *source.find(query)->binary,
                                   .tuning = source.tuning(winner.id)};
    publication.winner.tuned = is_tuned;
    if (!is_tuned) publication.tuning->measure_ms = 5000;
    cache::Store(file_).publish(publication);
  }

  const std::filesystem::path file_ = folder_ / "cache.sqlite";
};

TEST_F(SessionClaimsTest, SixtyFourProcessesTuneOnce) {
  constexpr int kTuned = 1, kFound = 0, kOther = 2;
  std::vector<::pid_t> children;
  for (int process = 0; process < 64; ++process) {
    const ::pid_t child = ::fork();
    if (child == 0) {
      int result = kOther;
      try {
        Session session(device_, options());
        const ChoiceSource source = session.prepare(family_.problem(kSize)).source;
        result = source == ChoiceSource::tuned ? kTuned : source == ChoiceSource::cache ? kFound : kOther;
      } catch (const std::exception&) {
      }
      ::_exit(result);
    }
    children.push_back(child);
  }
  std::vector<int> results;
  for (const ::pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  EXPECT_EQ(std::count(results.begin(), results.end(), kTuned), 1);
  EXPECT_EQ(std::count(results.begin(), results.end(), kFound), 63);
}

TEST_F(SessionClaimsTest, WaitsForTheOwnerAndReadsItsWinner) {
  const cache::KeyRecord key = key_of_class();
  claim(key, 60s);
  const std::jthread owner([&] {
    std::this_thread::sleep_for(100ms);
    publish_as_owner(key, true);
  });
  Session session(device_, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
  EXPECT_EQ(session.counters().waits, 1u);
  EXPECT_EQ(session.counters().tunings, 0u);
}

TEST_F(SessionClaimsTest, TakesWhatTheOwnerHadNoTimeToCompare) {
  const cache::KeyRecord key = key_of_class();
  claim(key, 60s);
  const std::jthread owner([&] {
    std::this_thread::sleep_for(100ms);
    publish_as_owner(key, false);
  });
  SessionOptions hasty = options();
  hasty.tune_budget = 5s;
  for (const unsigned waits : {1, 0}) {
    Session session(device_, hasty);
    const Choice choice = launch(session);
    EXPECT_EQ(choice.source, ChoiceSource::cache);
    EXPECT_FALSE(choice.winner->tuned);
    EXPECT_EQ(session.counters().waits, waits) << "a later process repeats nothing either";
    EXPECT_EQ(session.counters().tunings, 0u);
  }
}

TEST_F(SessionClaimsTest, WaitsNoLongerThanItsOwnBudget) {
  claim(key_of_class(), 60s);
  SessionOptions hasty = options();
  hasty.tune_budget = 100ms;
  Session session(device_, hasty);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(launch(session).source, ChoiceSource::heuristic);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s) << "not as long as the claim holds";
  EXPECT_EQ(session.counters().waits, 1u);
}

TEST_F(SessionClaimsTest, ComesBackForTheWinnerThatAnotherProcessWasTuning) {
  const cache::KeyRecord key = key_of_class();
  claim(key, 60s);
  SessionOptions hasty = options();
  hasty.tune_budget = 100ms;
  Session session(device_, hasty);
  EXPECT_EQ(launch(session).source, ChoiceSource::heuristic);
  EXPECT_EQ(launch(session).source, ChoiceSource::memory) << "without looking each time";
  cache::Store(file_).release(key, "another");
  Session(std::make_shared<FakeDevice>(), options()).prepare(family_.problem(kSize));
  std::this_thread::sleep_for(150ms);
  const Choice choice = launch(session);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_TRUE(choice.winner->tuned);
  EXPECT_EQ(launch(session).source, ChoiceSource::memory);
  EXPECT_EQ(session.counters().tunings, 0u);
}

TEST_F(SessionClaimsTest, APinnedSessionKeepsItsWinnerThoughAnotherProcessHasTuned) {
  const cache::KeyRecord key = key_of_class();
  claim(key, 60s);
  SessionOptions hasty = options();
  hasty.tune_budget = 100ms;
  Session session(device_, hasty);
  const Choice first = launch(session);
  EXPECT_EQ(first.source, ChoiceSource::heuristic);
  session.pin();
  cache::Store(file_).release(key, "another");
  Session(std::make_shared<FakeDevice>(), options()).prepare(family_.problem(kSize));
  std::this_thread::sleep_for(150ms);
  const Choice later = launch(session);
  EXPECT_EQ(later.source, ChoiceSource::memory);
  EXPECT_EQ(later.winner, first.winner);
  session.prepare(graph_problem());  // reads the winner that the other process has stored for the stream
  EXPECT_EQ(launch(session).winner, first.winner);
}

TEST_F(SessionClaimsTest, TunesLaterWhatAnotherProcessHasGivenUp) {
  const cache::KeyRecord key = key_of_class();
  claim(key, 60s);
  SessionOptions hasty = options();
  hasty.tune_budget = 2s;
  Session session(device_, hasty);
  EXPECT_EQ(launch(session).source, ChoiceSource::heuristic);
  std::this_thread::sleep_for(hasty.tune_budget + 50ms);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(launch(session).source, ChoiceSource::memory);
  EXPECT_LT(std::chrono::steady_clock::now() - start, hasty.tune_budget) << "who has waited once waits no more";
  cache::Store(file_).release(key, "another");
  ChoiceSource source = ChoiceSource::memory;
  for (const auto end = start + 60s; source != ChoiceSource::tuned && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(10ms);
    source = launch(session).source;
  }
  EXPECT_EQ(source, ChoiceSource::tuned);
}

TEST_F(SessionClaimsTest, AMakeshiftDoesNotWaitForTheTuningOfAnotherProblem) {
  claim(key_of_class(), 60s);
  SessionOptions hasty = options();
  hasty.tune_budget = 100ms;
  Session session(device_, hasty);
  EXPECT_EQ(launch(session).source, ChoiceSource::heuristic);
  std::this_thread::sleep_for(150ms);
  std::future_status status = std::future_status::timeout;
  device_->condition_at = [&, is_first = true](double) mutable {
    if (std::exchange(is_first, false)) {
      std::future<Choice> call =
          std::async(std::launch::async, [&] { return session.prepare(family_.problem(kSize)); });
      status = call.wait_for(5s);
      if (status == std::future_status::timeout) device_->condition_at = {};  // the tuning ends, and then the call does
    }
    return DeviceCondition{};
  };
  session.prepare(family_.problem(64 * kSize));
  EXPECT_EQ(status, std::future_status::ready);
}

TEST_F(SessionClaimsTest, TakesOverWhenTheLeaseIsPast) {
  claim(key_of_class(), 200ms);
  Session session(device_, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
  EXPECT_EQ(session.counters().waits, 1u);
}

TEST_F(SessionClaimsTest, TakesOverFromAProcessThatWasKilled) {
  const cache::KeyRecord key = key_of_class();
  const ::pid_t child = ::fork();
  if (child == 0) {
    cache::Store(file_).claim(key, nullptr, "child", 60s, 20s);
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  Session session(device_, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
  EXPECT_EQ(session.counters().waits, 0u) << "the dead are not waited for";
}

TEST_F(SessionClaimsTest, NoFileIsLockedWhileSomethingIsMeasured) {
  int writes = 0;
  device_->condition_at = [&](double) {
    cache::Store(file_).note({.misses = {}, .loads = {{99, 1}}}, 0ms);  // throws where it has to wait for a lock
    EXPECT_FALSE(std::filesystem::exists(file_.native() + "-journal"));
    ++writes;
    return DeviceCondition{};
  };
  Session session(device_, options());
  EXPECT_EQ(launch(session).source, ChoiceSource::tuned);
  EXPECT_GT(writes, 0);
}

TEST_F(SessionClaimsTest, AnyFailureOfATuningReleasesItsClaim) {
  const cache::KeyRecord key = key_of_class();
  device_ = std::make_shared<FakeDevice>();
  device_->condition_at = [](double) -> DeviceCondition { throw std::runtime_error("no condition"); };
  EXPECT_THROW(Session(device_, options()).prepare(family_.problem(kSize)), std::runtime_error);
  EXPECT_FALSE(cache::Store(file_).is_claimed(key));
}

TEST_F(SessionClaimsTest, AFailedTuningReleasesItsClaim) {
  const cache::KeyRecord key = key_of_class();
  device_ = std::make_shared<FakeDevice>();
  device_->script = [](std::string_view) { return FakeKernel{.compile_error = "out of order"}; };
  EXPECT_THROW(Session(device_, options()).prepare(family_.problem(kSize)), Error);
  EXPECT_FALSE(cache::Store(file_).is_claimed(key));
}

}  // namespace
}  // namespace hone
