// Tests of what a campaign asks of a session: to compare candidates, and to let a winner serve other sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <hone/error.h>

#include "cache/store.h"
#include "tests/runtime/support/session_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

using namespace std::chrono_literals;

class SessionCompareTest : public FakeSessionTest {
 protected:
  Candidate candidate(std::string_view policy) const { return {*family_.space().parse(policy), {.max_blocks = 8}}; }
  cache::Store store() const { return cache::Store(folder_ / "cache.sqlite"); }

  /// One whose units are not those of family_.
  static TotalFamilyOptions another_family() {
    TotalFamilyOptions options;
    options.name = "other";
    options.sources = {{"other.cuh", "// another text"}};
    return options;
  }
};

TEST_F(SessionCompareTest, ComparingStoresAndDispatchesNothing) {
  Session session(device_, options(MissPolicy::error));
  const Tuning comparison = session.compare(
      family_.problem(kSize), {.only = {candidate("threads=128 work=1 finish=alone"),
                                        candidate("threads=256 work=1 finish=alone")}});
  EXPECT_EQ(comparison.trials.size(), 2u);
  EXPECT_TRUE(store().winners().empty());
  EXPECT_THROW(session.prepare(family_.problem(kSize)), Error);
  EXPECT_THROW(session.compare(family_.problem(kSize), {}), Error) << "nothing to compare";
}

TEST_F(SessionCompareTest, AnAdoptedWinnerServesTheOtherSizesInEveryProcess) {
  Session session(device_, options(MissPolicy::error));
  const Tuning tuning = session.tune(family_.problem(kSize), {.budget = 1min});
  const std::vector<Problem> served{family_.problem(kSize), family_.problem(4 * kSize)};
  session.adopt(tuning, served);
  EXPECT_EQ(launch(session, 4 * kSize).source, ChoiceSource::memory);

  Session later(device_, options(MissPolicy::error));
  const Choice choice = launch(later, 4 * kSize);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_TRUE(choice.winner->tuned);
  EXPECT_EQ(choice.winner->candidate, tuning.trials[*tuning.winner].candidate);
  EXPECT_EQ(choice.winner->tuned_extents[0], kSize) << "where it was measured";
  for (const cache::StoredWinner& stored : store().winners()) {
    const bool is_its_own = stored.key.problem.sizes[0].first <= kSize && stored.key.problem.sizes[0].last >= kSize;
    EXPECT_EQ(store().tuning(stored.id).has_value(), is_its_own) << "trials are of the size that they were taken at";
    EXPECT_EQ(stored.winner.tuned_extents[0], kSize);
    EXPECT_EQ(stored.winner.bytes_moved, family_.bytes_moved(family_.problem(kSize))) << "in median_us, at that size";
  }
  EXPECT_THROW(launch(later, 2 * kSize), Error) << "the size between was not named";
}

TEST_F(SessionCompareTest, AWinnerThatCannotServeOneOfThemServesNone) {
  Session session(device_, options(MissPolicy::error));
  const Tuning tuning = session.tune(family_.problem(kSize), {.budget = 1min});
  const TotalFamily broken(another_family());
  device_->script = [](std::string_view) { return FakeKernel{.compile_error = "not today"}; };
  const std::vector<Problem> served{family_.problem(4 * kSize), broken.problem(8 * kSize)};
  EXPECT_THROW(session.adopt(tuning, served), Error);
  EXPECT_THROW(launch(session, 4 * kSize), Error) << "it was not tuned";
  EXPECT_EQ(store().winners().size(), 1u);
}

TEST_F(SessionCompareTest, WithoutAWinnerThereIsNothingToAdopt) {
  Session session(device_, options(MissPolicy::error));
  Tuning none;
  none.problem = family_.problem(kSize);
  EXPECT_THROW(session.adopt(none, std::span(&none.problem, 1)), Error);
}

TEST_F(SessionCompareTest, ATuningThatComparedNothingIsStoredAsUntunedAndMissed) {
  Session session(device_, options(MissPolicy::error));
  const Tuning tuning = session.tune(family_.problem(kSize), {.budget = 0ms});
  ASSERT_TRUE(tuning.winner);
  EXPECT_FALSE(tuning.has_compared());
  Session later(device_, options(MissPolicy::heuristic));
  const Choice choice = launch(later);
  EXPECT_EQ(choice.source, ChoiceSource::cache);
  EXPECT_FALSE(choice.winner->tuned);
  EXPECT_EQ(store().misses().size(), 1u);
}

TEST_F(SessionCompareTest, AMissThatComparedNothingIsStoredAsUntunedAndMissed) {
  SessionOptions hasty = options();
  hasty.tune_budget = 0ms;
  Session session(device_, hasty);
  const Choice choice = launch(session);
  EXPECT_EQ(choice.source, ChoiceSource::heuristic);
  EXPECT_FALSE(choice.winner->tuned);
  EXPECT_EQ(session.counters().tunings, 1u);
  EXPECT_FALSE(store().winners().at(0).winner.tuned);
  EXPECT_EQ(store().misses().size(), 1u);
}

TEST_F(SessionCompareTest, AWrongCandidateIsNotAdopted) {
  device_->script = [](std::string_view source) {
    return source == "threads=128 work=4 finish=alone" ? FakeKernel{.us = 50, .is_wrong = true} : FakeKernel{.us = 40};
  };
  Session session(device_, options(MissPolicy::error));
  const Candidate wrong = candidate("threads=128 work=4 finish=alone");
  Tuning tuning =
      session.compare(family_.problem(kSize), {.only = {wrong, candidate("threads=128 work=1 finish=alone")}});
  ASSERT_TRUE(tuning.winner);
  const Candidate right = tuning.trials[*tuning.winner].candidate;
  EXPECT_NE(right, wrong);
  tuning.winner = 1 - *tuning.winner;
  const std::vector<Problem> served{family_.problem(kSize)};
  try {
    session.adopt(tuning, served);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), Names("expected"));
  }
  EXPECT_THROW(session.prepare(family_.problem(kSize)), Error);
  tuning.winner = 1 - *tuning.winner;
  session.adopt(tuning, served);
  EXPECT_EQ(session.prepare(family_.problem(kSize)).winner->candidate, right);
}

TEST_F(SessionCompareTest, WhatIsTunedNextIsCompiledMeanwhile) {
  const TotalFamily other_family(another_family());
  Session session(device_, options(MissPolicy::error));
  Problem graph = family_.problem(kSize);
  graph.launch_context = LaunchContext::graph;
  TuningOptions tuning{.budget = 1min};
  tuning.next = {other_family.problem(kSize)};
  tuning.on_progress = [&](const TuningProgress& progress) {
    const auto patience = std::chrono::steady_clock::now() + 10s;
    while (progress.phase == TuningPhase::measuring && device_->compiles() < 24 &&
           std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(1ms);
  };
  session.tune(graph, tuning);
  EXPECT_EQ(device_->compiles(), 24);
  session.tune(other_family.problem(kSize), {.budget = 1min});
  EXPECT_EQ(device_->compiles(), 24);
}

TEST_F(SessionCompareTest, WhatIsTunedLaterIsCompiledMeanwhileToo) {
  TotalFamilyOptions third = another_family();
  third.source_comment = "// of another operation";
  const TotalFamily other_family(another_family()), third_family(third);
  Session session(device_, options(MissPolicy::error));
  TuningOptions tuning{.budget = 1min};
  tuning.next = {other_family.problem(kSize), third_family.problem(kSize)};
  tuning.on_progress = [&](const TuningProgress& progress) {
    const auto patience = std::chrono::steady_clock::now() + 10s;
    while (progress.phase == TuningPhase::measuring && device_->compiles() < 36 &&
           std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(1ms);
  };
  session.tune(family_.problem(kSize), tuning);
  EXPECT_EQ(device_->compiles(), 36);
}

TEST_F(SessionCompareTest, ProblemsWhoseWinnersShareCodeShareAModule) {
  Session session(device_, options(MissPolicy::error));
  const Tuning tuning = session.tune(family_.problem(kSize), {.budget = 1min});
  const int loads = device_->loads();
  std::vector<Problem> served;
  for (int i = 1; i <= 16; ++i) served.push_back(family_.problem(kSize + 1000 * i));
  session.adopt(tuning, served);
  EXPECT_EQ(device_->loads(), loads);
  Session another(device_, options(MissPolicy::error));
  for (const Problem& problem : served) another.prepare(problem);
  EXPECT_EQ(device_->loads(), loads + 1);
}

TEST_F(SessionCompareTest, WhereNothingIsNextNothingIsCompiledAnyMore) {
  const TotalFamily other_family(another_family());
  Session session(device_, options(MissPolicy::error));
  std::atomic<int> compiled = 0;
  device_->on_compile = [&] {
    std::this_thread::sleep_for(10ms);
    ++compiled;
  };
  TuningOptions first{.budget = 1min};
  first.next = {other_family.problem(kSize)};
  session.tune(family_.problem(kSize), first);
  session.tune(family_.problem(4 * kSize), {.budget = 1min});
  const int compiles = device_->compiles();
  EXPECT_EQ(compiled, compiles) << "something is under way";
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(device_->compiles(), compiles) << "something was begun";
}

TEST_F(SessionCompareTest, AStoredTuningIsReadBack) {
  const Problem problem = family_.problem(kSize);
  Tuning tuning = Session(device_, options(MissPolicy::error)).tune(problem, {.budget = 1min});
  Session session(device_, options(MissPolicy::error));
  const std::optional<Tuning> stored = session.stored_tuning(problem);
  ASSERT_TRUE(stored && stored->winner && tuning.winner);
  EXPECT_EQ(stored->trials[*stored->winner].candidate, tuning.trials[*tuning.winner].candidate);
  ASSERT_EQ(stored->trials.size(), tuning.trials.size());
  for (std::size_t i = 0; i < tuning.trials.size(); ++i) {
    EXPECT_EQ(stored->trials[i].candidate, tuning.trials[i].candidate);
    EXPECT_EQ(stored->trials[i].verdict, tuning.trials[i].verdict);
    EXPECT_EQ(stored->trials[i].reason.text(), tuning.trials[i].reason.text());
    EXPECT_DOUBLE_EQ(stored->trials[i].median_us, tuning.trials[i].median_us);
  }
  EXPECT_EQ(session.counters().compiles, 0u);

  Problem larger = problem;
  ++larger.extents[0];
  EXPECT_EQ(session.stored_tuning(larger)->problem.extents, problem.extents) << "where it was measured";
  EXPECT_FALSE(session.stored_tuning(family_.problem(64 * kSize)));
  EXPECT_FALSE(Session(device_, {.cache_path = {}}).stored_tuning(problem));
}

TEST_F(SessionCompareTest, TheSmallestClassIsTunedAgainAsAnyOther) {
  Session session(device_, options(MissPolicy::error));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(session.tune(family_.problem(100), {.budget = 1min}).winner);
  EXPECT_EQ(store().winners().size(), 1u);
}

}  // namespace
}  // namespace hone
