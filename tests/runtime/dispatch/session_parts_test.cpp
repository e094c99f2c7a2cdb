// CacheLookup, NearestWinner and TuningService without the session around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "runtime/dispatch/cache_lookup.h"
#include "runtime/dispatch/nearest_winner.h"
#include "runtime/dispatch/tuning_service.h"
#include "runtime/dispatch/winner_checks.h"
#include "tests/runtime/support/session_fixture.h"

namespace hone {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// The parts of one session.
struct Parts {
  Parts(const std::shared_ptr<Device>& device, const SessionOptions& options)
      : core(device, options), plans(options.on_miss == MissPolicy::tune) {}

  SessionCore core;
  PlanTable plans;
  CacheLookup lookup{core, plans};
  NearestWinner nearest{core, plans, lookup};
  TuningService tuning{core, plans, lookup, nearest};
};

class SessionPartsTest : public FakeSessionTest {
 protected:
  Problem problem(std::int64_t n = kSize) const { return family_.problem(n); }

  /// Tunes as an earlier session did, and stores the winner.
  Candidate tune(std::int64_t n = kSize) {
    Parts earlier(device_, options());
    const Tuning tuning = earlier.tuning.tune(problem(n), {.budget = 1min});
    return tuning.trials.at(tuning.winner.value()).candidate;
  }
};

using CacheLookupTest = SessionPartsTest;
using NearestWinnerTest = SessionPartsTest;
using TuningServiceTest = SessionPartsTest;

TEST_F(CacheLookupTest, FindsNothingInAnEmptyFile) {
  Parts parts(device_, options());
  const CachedPlan cached = parts.lookup.find(problem(), false);
  EXPECT_EQ(cached.plan, nullptr);
  EXPECT_FALSE(cached.is_misfit);
  EXPECT_FALSE(cached.untuned.has_value());
}

TEST_F(CacheLookupTest, LoadsATunedWinnerWithoutCompiling) {
  const Candidate tuned = tune();
  const int compiles = device_->compiles();
  Parts parts(device_, options());
  const CachedPlan cached = parts.lookup.find(problem(), false);
  ASSERT_NE(cached.plan, nullptr);
  EXPECT_EQ(cached.plan->winner.candidate, tuned);
  EXPECT_NE(cached.plan->loaded.module, nullptr);
  EXPECT_EQ(parts.plans.find(problem()), cached.plan);
  EXPECT_EQ(parts.core.counters().cache_hits, 1u);
  EXPECT_EQ(device_->compiles(), compiles);
}

TEST_F(CacheLookupTest, AnUntunedWinnerIsFoundButNotLoaded) {
  Parts(device_, options()).tuning.choose_heuristic(problem(), false);
  Parts parts(device_, options());
  const CachedPlan cached = parts.lookup.find(problem(), false);
  EXPECT_EQ(cached.plan, nullptr);
  ASSERT_TRUE(cached.untuned.has_value());
  EXPECT_EQ(parts.plans.find(problem()), nullptr);
  EXPECT_EQ(parts.lookup.settled(problem(), cached).plan, nullptr) << "nobody tried to tune it";
  EXPECT_NE(parts.lookup.load(problem(), *cached.untuned, false), nullptr);
}

TEST_F(CacheLookupTest, AWinnerThatThisDeviceRunsOtherwiseIsAMisfit) {
  tune();
  device_->script = [](std::string_view) { return FakeKernel{.resources = {.registers = 99}}; };
  Parts parts(device_, options());
  const CachedPlan cached = parts.lookup.find(problem(), false);
  EXPECT_TRUE(cached.is_misfit);
  EXPECT_EQ(parts.plans.find(problem()), nullptr);
  EXPECT_EQ(parts.core.counters().cache_rejects, 1u);
}

TEST_F(NearestWinnerTest, LendsTheWinnerOfANearSizeFromTheTable) {
  Parts parts(device_, {.on_miss = MissPolicy::heuristic, .cache_path = {}});
  const Tuning tuning = parts.tuning.tune(problem(), {.budget = 1min});
  const Resolved lent = parts.nearest.serve(problem(2 * kSize), std::nullopt, false);
  ASSERT_NE(lent.plan, nullptr);
  EXPECT_EQ(lent.source, ChoiceSource::nearest);
  EXPECT_EQ(lent.plan->winner.candidate, tuning.trials.at(tuning.winner.value()).candidate);
  EXPECT_TRUE(lent.plan->winner.is_from_nearest());
}

TEST_F(NearestWinnerTest, LendsNothingFarAway) {
  Parts parts(device_, {.on_miss = MissPolicy::heuristic, .cache_path = {}});
  parts.tuning.tune(problem(), {.budget = 1min});
  EXPECT_EQ(parts.nearest.serve(problem(64 * kSize), std::nullopt, false).plan, nullptr);
}

TEST_F(NearestWinnerTest, LendsNothingOfAnotherSizeWhereMissesAreErrors) {
  tune();
  Parts parts(device_, options(MissPolicy::error));
  EXPECT_EQ(parts.nearest.serve(problem(2 * kSize), std::nullopt, false).plan, nullptr);
}

TEST_F(NearestWinnerTest, LendsTheStreamsWinnerToAGraph) {
  const Candidate tuned = tune();
  Parts parts(device_, options());
  const Resolved lent = parts.nearest.serve(graph_problem(), std::nullopt, true);
  ASSERT_NE(lent.plan, nullptr);
  EXPECT_EQ(lent.plan->winner.candidate, tuned);
  EXPECT_TRUE(lent.plan->is_due());
}

TEST_F(NearestWinnerTest, ATuningStartsWithTheWinnersOfOtherSizes) {
  const Candidate tuned = tune();
  Parts parts(device_, options());
  EXPECT_THAT(parts.nearest.starts_for(problem(2 * kSize)), ElementsAre(tuned));
  EXPECT_THAT(parts.nearest.starts_for(problem()), IsEmpty()) << "its own winner is no neighbour's";
  EXPECT_THAT(parts.nearest.starts_for(graph_problem()), ElementsAre(tuned));
}

TEST_F(TuningServiceTest, StoresItsWinnerAndDispatchesToIt) {
  Parts parts(device_, options());
  const std::optional<Resolved> tuned = parts.tuning.tune_miss(problem(), false);
  ASSERT_TRUE(tuned.has_value());
  EXPECT_EQ(tuned->source, ChoiceSource::tuned);
  EXPECT_EQ(parts.plans.find(problem()), tuned->plan);
  EXPECT_EQ(parts.core.counters().tunings, 1u);
  EXPECT_TRUE(parts.core.cache().find(problem()).value().winner.tuned);
  EXPECT_FALSE(parts.core.cache().is_claimed(Work::tuning, problem()));
}

TEST_F(TuningServiceTest, TakesTheWinnerThatAnotherProcessHasStoredMeanwhile) {
  Parts parts(device_, options());
  tune();
  const std::optional<Resolved> found = parts.tuning.tune_miss(problem(), false);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->source, ChoiceSource::cache);
  EXPECT_EQ(parts.core.counters().tunings, 0u);
}

TEST_F(TuningServiceTest, DoesNotWaitForAnotherTuningWhereAPlanServesMeanwhile) {
  Parts other(device_, options());
  ASSERT_EQ(other.core.cache().claim(Work::tuning, problem(), true, 0ms), cache::ClaimState::taken);
  Parts parts(device_, options());
  parts.tuning.choose_heuristic(problem(), false);
  EXPECT_FALSE(parts.tuning.tune_miss(problem(), false).has_value());
  EXPECT_EQ(parts.core.counters().waits, 1u);
  other.core.cache().release(Work::tuning, problem());
}

TEST_F(TuningServiceTest, ComparingChangesNothing) {
  Parts parts(device_, options());
  const Candidate candidate{*family_.space().parse("threads=128 work=1 finish=alone"), {.max_blocks = 8}};
  EXPECT_TRUE(parts.tuning.compare(problem(), {.only = {candidate}}).winner.has_value());
  EXPECT_EQ(parts.plans.find(problem()), nullptr);
  EXPECT_FALSE(parts.core.cache().find(problem()).has_value());
}

}  // namespace
}  // namespace hone
