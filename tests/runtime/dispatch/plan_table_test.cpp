#include "runtime/dispatch/plan_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/dispatch/winner_checks.h"
#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class PlanTableTest : public testing::Test {
 protected:
  static constexpr std::int64_t kSize = 1000;

  Winner winner(const Problem& problem, bool tuned, std::string_view policy = "threads=128 work=1 finish=alone") const {
    return make_winner(problem, {.candidate = {*family_.space().parse(policy), {.max_blocks = 8}}}, tuned);
  }
  const LoadedPlan& install(const Problem& problem, bool tuned, bool capturing = false) {
    return plans_.install(problem, winner(problem, tuned), nullptr, capturing);
  }
  Problem graph_problem() const { return in_context(problem_, LaunchContext::graph); }

  TotalFamily family_;
  Problem problem_ = family_.problem(kSize);
  PlanTable plans_{true};
};

TEST_F(PlanTableTest, AnEmptyTableHasNoPlan) {
  EXPECT_EQ(plans_.find(problem_), nullptr);
  EXPECT_EQ(plans_.failure(problem_), nullptr);
}

TEST_F(PlanTableTest, AWinnerServesItsClassAlone) {
  const LoadedPlan& plan = install(problem_, true);
  EXPECT_EQ(plans_.find(problem_), &plan);
  EXPECT_EQ(plans_.find(family_.problem(kSize + 1)), &plan);
  EXPECT_EQ(plans_.find(family_.problem(4 * kSize)), nullptr);
  EXPECT_EQ(plans_.find(graph_problem()), nullptr);
}

TEST_F(PlanTableTest, ANewerWinnerHidesTheOlderOneWhichStaysValid) {
  const LoadedPlan& older = install(problem_, false);
  const LoadedPlan& newer = install(problem_, true);
  EXPECT_EQ(plans_.find(problem_), &newer);
  EXPECT_FALSE(older.winner.tuned);
}

TEST_F(PlanTableTest, APinnedTableKeepsEachPlanAndTakesNewOnes) {
  const LoadedPlan& provisional = install(graph_problem(), false, true);
  EXPECT_TRUE(plans_.is_due(provisional));
  plans_.pin();
  EXPECT_FALSE(plans_.is_due(provisional));
  EXPECT_EQ(&install(graph_problem(), true), &provisional);
  const LoadedPlan& stream = install(problem_, true);
  EXPECT_EQ(plans_.find(problem_), &stream);
  EXPECT_EQ(plans_.find(graph_problem()), &provisional) << "the stream's winner does not replace it";
  EXPECT_EQ(&plans_.lend_to_graph(graph_problem(), stream), &provisional);
}

TEST_F(PlanTableTest, APlanKnowsWhetherItsCandidateNeedsAWorkspace) {
  EXPECT_FALSE(install(problem_, true).needs_workspace);
  const Winner joined = winner(problem_, true, "threads=128 work=1 finish=joined");
  EXPECT_TRUE(plans_.install(problem_, joined, nullptr, false).needs_workspace);
}

TEST_F(PlanTableTest, AnUntunedWinnerIsProvisionalInACaptureIfMissesAreTuned) {
  EXPECT_TRUE(install(problem_, false, true).is_due());
  EXPECT_FALSE(install(problem_, false, false).is_due());
  EXPECT_FALSE(install(problem_, true, true).is_due());
  PlanTable never_tuned(false);
  EXPECT_FALSE(never_tuned.install(problem_, winner(problem_, false), nullptr, true).is_due());
}

TEST_F(PlanTableTest, ATunedWinnerOfTheStreamReplacesWhatItsGraphBorrows) {
  install(graph_problem(), false);
  install(problem_, true);
  const LoadedPlan* lent = plans_.find(graph_problem());
  EXPECT_TRUE(lent->winner.tuned);
  EXPECT_EQ(lent->winner.launch_context, LaunchContext::stream);
  EXPECT_TRUE(lent->is_due()) << "a tuning of the graph problem may find a better one";
}

TEST_F(PlanTableTest, AWinnerTunedForTheGraphIsKept) {
  const LoadedPlan& own = install(graph_problem(), true);
  install(problem_, true);
  EXPECT_EQ(plans_.find(graph_problem()), &own);
}

TEST_F(PlanTableTest, APostponedPlanWaitsTwiceAsLongEachTimeUpToAnHour) {
  const LoadedPlan* plan = &plans_.postpone(problem_, install(problem_, false), 1min);
  EXPECT_EQ(plan->retry_pause, 1min);
  EXPECT_TRUE(plan->is_provisional);
  EXPECT_FALSE(plan->is_due());
  EXPECT_EQ(plans_.find(problem_), plan);
  plan = &plans_.postpone(problem_, *plan, 1min);
  EXPECT_EQ(plan->retry_pause, 2min);
  for (int i = 0; i < 10; ++i) plan = &plans_.postpone(problem_, *plan, 1min);
  EXPECT_EQ(plan->retry_pause, 1h);
}

TEST_F(PlanTableTest, TunedWinnersOfAFamilyAreListedOnce) {
  install(family_.problem(2 * kSize), true);
  install(family_.problem(3 * kSize), false);
  plans_.lend_to_graph(in_context(family_.problem(2 * kSize), LaunchContext::graph),
                       *plans_.find(family_.problem(2 * kSize)));
  constexpr std::array<SizeRange, 3> kAll{{{0, 100 * kSize}, {0, 1}, {0, 1}}};
  const std::vector<Lender> winners = plans_.tuned_winners(std::span(&problem_, 1), kAll);
  ASSERT_THAT(winners, SizeIs(1));
  EXPECT_EQ(winners[0].problem.launch_context, LaunchContext::stream);
  const TotalFamily other;
  EXPECT_THAT(plans_.tuned_winners(std::vector{other.problem(kSize)}, kAll), IsEmpty());
}

TEST_F(PlanTableTest, TunedWinnersAreThoseOfRelativesWithinTheBox) {
  Problem misaligned = family_.problem(2 * kSize), f64 = misaligned, reproducible = misaligned;
  misaligned.alignment = 4;
  f64.dtype = DType::f64;
  reproducible.numerics = Numerics::reproducible;
  for (const Problem& each : {misaligned, graph_problem(), f64, reproducible, family_.problem(8 * kSize)})
    install(each, true);
  const auto extents_of = [&](const Problem& problem, std::int64_t last) {
    std::vector<std::int64_t> extents;
    for (const Lender& lender : plans_.tuned_winners(std::span(&problem, 1), {{{0, last}, {0, 1}, {0, 1}}}))
      extents.push_back(lender.problem.extents[0]);
    return extents;
  };
  EXPECT_THAT(extents_of(problem_, 8 * kSize), ElementsAre(2 * kSize, kSize, 8 * kSize));
  EXPECT_THAT(extents_of(problem_, 2 * kSize), ElementsAre(2 * kSize, kSize));
  EXPECT_THAT(extents_of(family_.problem(8 * kSize + 1), kSize), ElementsAre(kSize, 8 * kSize)) << "the last serves it";
  EXPECT_THAT(extents_of(f64, 8 * kSize), ElementsAre(2 * kSize));
}

TEST_F(PlanTableTest, AFailureIsThatOfTheWholeClass) {
  plans_.set_failure(problem_, Error(ErrorCode::compile_failed, "nothing compiles"));
  ASSERT_NE(plans_.failure(family_.problem(kSize + 1)), nullptr);
  EXPECT_EQ(plans_.failure(problem_)->code(), ErrorCode::compile_failed);
  EXPECT_EQ(plans_.failure(family_.problem(4 * kSize)), nullptr);
}

}  // namespace
}  // namespace hone
