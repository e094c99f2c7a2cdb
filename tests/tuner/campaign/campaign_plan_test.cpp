#include "tuner/campaign/campaign_plan.h"

#include <gmock/gmock.h>
#include <hone/tuned_reduce.h>

#include "tests/support/names.h"

namespace hone::tuner {
namespace {

using test::HasLine;

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr milliseconds kUnlimited = milliseconds::max();

Problem sum_of(std::int64_t n) { return reduce_problem(ReduceOp::sum, DType::f32, n); }
Problem max_of(std::int64_t n) { return reduce_problem(ReduceOp::max, DType::f32, n); }

CampaignDevice device(const std::string& name, const std::string& identity, std::int64_t free_memory_bytes = 0) {
  return {.name = name, .label = name, .identity = identity, .free_memory_bytes = free_memory_bytes};
}

CampaignItem tuned(const Problem& problem, double median_us = 1) {
  return {.problem = problem, .outcome = Outcome::tuned, .median_us = median_us, .measured_problem = problem};
}

class CampaignPlanTest : public ::testing::Test {
 protected:
  /// Devices of the identities; the cache has nothing but `kept`.
  CampaignPlan& start(const std::vector<CampaignDevice>& devices, const std::vector<Problem>& kept = {}) {
    plan_.emplace(problems_, options_);
    plan_->set_devices(devices);
    for (std::size_t group = 0; group < plan_->groups().size(); ++group) look_up(group, kept);
    return *plan_;
  }

  void look_up(std::size_t group, const std::vector<Problem>& kept) {
    std::vector<CampaignItem> found;
    for (const Problem& problem : plan_->problems_of(plan_->groups()[group])) {
      const bool is_kept = std::any_of(kept.begin(), kept.end(), [&](const Problem& each) {
        return each.extents == problem.extents && each.operation == problem.operation;
      });
      found.push_back({.problem = problem,
                       .outcome = is_kept ? Outcome::kept : Outcome::not_reached,
                       .measured_problem = problem,
                       .is_stale = is_kept && kept_is_stale_});
    }
    plan_->take_looked_up(group, plan_->groups()[group].devices.front(), std::move(found));
  }

  /// The size that a device is to tune; 0: it is to do something else, or nothing.
  std::int64_t tunes_next(std::size_t lane = 0, milliseconds left = kUnlimited) {
    const Step step = plan_->next_step(lane, left);
    const auto* tune = std::get_if<TuneStep>(&step);
    if (!tune) return 0;
    target_ = tune->item;
    request_ = tune->request;
    return tune->request.problem.extents[0];
  }

  /// The sizes that are compiled while the device tunes what tunes_next() returned.
  std::vector<std::int64_t> next() const {
    std::vector<std::int64_t> sizes;
    for (const Problem& problem : request_.next) sizes.push_back(problem.extents[0]);
    return sizes;
  }

  std::vector<WeightedProblem> problems_{{.problem = sum_of(1024)}, {.problem = sum_of(4096), .weight = 3}};
  CampaignOptions options_;
  bool kept_is_stale_ = false;
  std::optional<CampaignPlan> plan_;
  std::size_t target_ = 0;
  TuneRequest request_;
};

TEST_F(CampaignPlanTest, ProblemsAreTunedInTheirOrderAndThenConsolidated) {
  CampaignPlan& plan = start({device("a", "one")});
  EXPECT_FALSE(plan.is_done(plan.groups()[0]));
  EXPECT_EQ(tunes_next(), 1024);
  EXPECT_THAT(next(), ElementsAre(4096)) << "it is compiled meanwhile";
  plan.take_tuned(target_, 0, tuned(sum_of(1024)), {});
  EXPECT_EQ(tunes_next(), 4096);
  EXPECT_EQ(request_.weight, 3);
  EXPECT_THAT(next(), IsEmpty());
  EXPECT_EQ(plan.next_step(0, kUnlimited).index(), 0U) << "the last one is not tuned yet";
  plan.take_tuned(target_, 0, tuned(sum_of(4096)), {"a candidate"});
  EXPECT_THAT(plan.result().items[1].died, ElementsAre("a candidate"));
  EXPECT_FALSE(plan.is_done(plan.groups()[0]));
  const Step step = plan.next_step(0, kUnlimited);
  const auto& consolidate = std::get<ConsolidateStep>(step).request;
  EXPECT_THAT(consolidate.problems, SizeIs(2));
  EXPECT_THAT(consolidate.may_change, ElementsAre(true, true));
  EXPECT_TRUE(plan.is_done(plan.groups()[0]));
}

TEST_F(CampaignPlanTest, WhatTheCacheHasIsKept) {
  start({device("a", "one")}, {sum_of(1024)});
  EXPECT_EQ(tunes_next(), 4096);
  plan_->take_tuned(target_, 0, tuned(sum_of(4096)), {});
  const Step step = plan_->next_step(0, kUnlimited);
  EXPECT_THAT(std::get<ConsolidateStep>(step).request.may_change, ElementsAre(false, true));
}

TEST_F(CampaignPlanTest, WhatTheCacheHasIsTunedAgainWhenThatIsAsked) {
  kept_is_stale_ = true;
  problems_[0].again_when_stale = true;
  start({device("a", "one")}, {sum_of(1024), sum_of(4096)});
  EXPECT_EQ(tunes_next(), 1024);
  EXPECT_EQ(tunes_next(), 0) << "a stale winner of the other one does";
  options_.again = true;
  start({device("a", "one")}, {sum_of(1024), sum_of(4096)});
  EXPECT_EQ(tunes_next(), 1024);
  EXPECT_EQ(tunes_next(), 4096);
}

TEST_F(CampaignPlanTest, DevicesOfOneIdentityShareTheWork) {
  CampaignPlan& plan = start({device("a", "one"), device("b", "two"), device("c", "one")});
  ASSERT_THAT(plan.groups(), SizeIs(2));
  EXPECT_THAT(plan.groups()[0].devices, ElementsAre(0U, 2U));
  EXPECT_THAT(plan.result().items, SizeIs(4)) << "once for each kind of device";
  EXPECT_EQ(tunes_next(0), 1024);
  EXPECT_EQ(tunes_next(2), 4096);
  EXPECT_EQ(tunes_next(0), 0);
  EXPECT_EQ(tunes_next(1), 1024);
}

TEST_F(CampaignPlanTest, EachDeviceIsAtASweepOfItsOwnWhileThereAreEnough) {
  problems_ = {{.problem = sum_of(1024)}, {.problem = sum_of(4096)},   {.problem = sum_of(16384)},
               {.problem = max_of(2048)}, {.problem = max_of(8192)}};
  start({device("a", "one"), device("b", "one")});
  EXPECT_EQ(tunes_next(0), 1024);
  EXPECT_THAT(next(), ElementsAre(4096, 16384));
  EXPECT_EQ(tunes_next(1), 2048) << "sizes of a sum share kernels, which the other device compiles";
  EXPECT_THAT(next(), ElementsAre(8192));
  EXPECT_EQ(tunes_next(0), 4096);
  EXPECT_EQ(tunes_next(1), 8192);
  EXPECT_THAT(next(), ElementsAre(16384)) << "sums are all that is left";
  EXPECT_EQ(tunes_next(1), 16384);
}

TEST_F(CampaignPlanTest, SeveralSweepsAreCompiledAheadAndNoneForTwoDevices) {
  problems_.clear();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::mean})
    problems_.push_back({.problem = reduce_problem(op, DType::f32, 1000 * (1 + static_cast<int>(problems_.size())))});
  start({device("a", "one"), device("b", "one")});
  EXPECT_EQ(tunes_next(0), 1000);
  EXPECT_THAT(next(), ElementsAre(2000, 3000)) << "one is left for the other device";
  EXPECT_EQ(tunes_next(1), 4000);
  EXPECT_THAT(next(), ElementsAre(3000)) << "it ends with what comes to the other device last";
  EXPECT_EQ(tunes_next(0), 2000);
  plan_->give_back(target_, 0);
  EXPECT_EQ(tunes_next(1), 2000) << "the first device is lost";
  EXPECT_THAT(next(), ElementsAre(3000));
}

TEST_F(CampaignPlanTest, ProblemOfOneKindOfDeviceIsForItAlone) {
  problems_[0].identity = "two";
  start({device("a", "one"), device("b", "two")});
  EXPECT_EQ(tunes_next(0), 4096);
  EXPECT_EQ(tunes_next(1), 1024);
}

TEST_F(CampaignPlanTest, WhatALostDeviceWasAtIsNextOfAnother) {
  CampaignPlan& plan = start({device("a", "one"), device("b", "one")});
  EXPECT_EQ(tunes_next(0), 1024);
  plan.give_back(target_, 0);
  EXPECT_EQ(tunes_next(1), 1024);
}

TEST_F(CampaignPlanTest, ProblemThatFitsNoDeviceFails) {
  problems_[0].problem = sum_of(std::int64_t{1} << 30);
  CampaignPlan& plan = start({device("a", "one", 1 << 20), device("b", "one", 1 << 30)});
  const Step step = plan.next_step(0, kUnlimited);
  EXPECT_EQ(std::get<SkippedStep>(step).item, 0U);
  EXPECT_EQ(plan.result().items[0].outcome, Outcome::failed);
  EXPECT_THAT(plan.result().items[0].reason, HasLine("1", "GiB")) << "of the larger one";
  EXPECT_EQ(tunes_next(), 4096);
}

TEST_F(CampaignPlanTest, DeviceThatDoesNotTellItsMemoryHasRoom) {
  const std::vector<CampaignDevice> devices{device("a", "one", 0)};
  EXPECT_EQ(memory_fault(devices, sum_of(std::int64_t{1} << 40)), "");
}

TEST_F(CampaignPlanTest, LastBudgetShrinksAndWhatIsNotBegunIsDropped) {
  options_.budget = milliseconds(100);
  CampaignPlan& plan = start({device("a", "one")});
  EXPECT_EQ(tunes_next(0, milliseconds(30)), 1024);
  EXPECT_EQ(request_.budget, milliseconds(30));
  EXPECT_FALSE(plan.result().out_of_budget);
  EXPECT_EQ(tunes_next(0, milliseconds(0)), 0);
  EXPECT_TRUE(plan.result().out_of_budget);
  EXPECT_TRUE(plan.is_done(plan.groups()[0]));
  EXPECT_EQ(plan.result().items[1].outcome, Outcome::not_reached);
}

TEST_F(CampaignPlanTest, WhatTheTotalBudgetCutsOffIsAsIfNotReached) {
  const auto ends = [&](milliseconds left, Outcome outcome, bool budget_spent) {
    options_.budget = milliseconds(100);
    CampaignPlan& plan = start({device("a", "one")});
    tunes_next(0, left);
    CampaignItem item = tuned(request_.problem);
    item.outcome = outcome;
    item.budget_spent = budget_spent;
    return plan.take_tuned(target_, 0, item, {});
  };
  const CampaignItem cut_off = ends(milliseconds(30), Outcome::untuned, true);
  EXPECT_TRUE(cut_off.is_cut_off);
  EXPECT_EQ(cut_off.outcome, Outcome::untuned);
  EXPECT_TRUE(plan_->result().out_of_budget);
  EXPECT_EQ(ends(milliseconds(30), Outcome::failed, true).outcome, Outcome::not_reached);
  EXPECT_EQ(ends(milliseconds(30), Outcome::failed, false).outcome, Outcome::failed) << "not for lack of time";
  EXPECT_FALSE(ends(milliseconds(100), Outcome::untuned, true).is_cut_off) << "by its own budget";
  EXPECT_FALSE(ends(milliseconds(30), Outcome::tuned, true).is_cut_off);
  EXPECT_FALSE(plan_->result().out_of_budget);
}

TEST_F(CampaignPlanTest, WithoutTimeASweepIsLeftAsItIs) {
  CampaignPlan& plan = start({device("a", "one")});
  for (const std::int64_t n : {1024, 4096}) {
    EXPECT_EQ(tunes_next(), n);
    plan.take_tuned(target_, 0, tuned(sum_of(n)), {});
  }
  EXPECT_TRUE(std::holds_alternative<SweepLeftStep>(plan.next_step(0, milliseconds(0))));
  ASSERT_THAT(plan.result().sweeps, SizeIs(1));
  EXPECT_EQ(plan.result().sweeps[0].sizes, 2U);
  EXPECT_NE(plan.result().sweeps[0].failure, "");
  start({device("a", "one")}, {sum_of(1024), sum_of(4096)});
  EXPECT_EQ(plan_->next_step(0, milliseconds(0)).index(), 0U) << "nothing of it is new";
  EXPECT_THAT(plan_->result().sweeps, IsEmpty());
}

TEST_F(CampaignPlanTest, OperationsAreSweepsOfTheirOwnAndALoneSizeIsNone) {
  problems_.push_back({.problem = max_of(1024)});
  start({device("a", "one")}, {sum_of(1024), sum_of(4096), max_of(1024)});
  const Step step = plan_->next_step(0, kUnlimited);
  EXPECT_THAT(std::get<ConsolidateStep>(step).request.problems, SizeIs(2));
  EXPECT_EQ(plan_->next_step(0, kUnlimited).index(), 0U);
}

TEST_F(CampaignPlanTest, NothingIsConsolidatedWhereNoRegretIsAllowed) {
  options_.most_regret = 0;
  start({device("a", "one")}, {sum_of(1024), sum_of(4096)});
  EXPECT_TRUE(plan_->is_done(plan_->groups()[0]));
}

TEST_F(CampaignPlanTest, ConsolidatedWinnersReplaceThoseOfTheirKindOfDevice) {
  CampaignPlan& plan = start({device("a", "one"), device("b", "two")}, {sum_of(1024), sum_of(4096)});
  const CampaignItem changed = tuned(sum_of(4096), 7);
  EXPECT_EQ(plan.take_consolidated(1, {.sweep = {.first = sum_of(1024)}, .changed = {}}), nullptr)
      << "it was consolidated before";
  const SweepResult* sweep =
      plan.take_consolidated(1, {.sweep = {.first = sum_of(1024), .winners = 1}, .changed = {changed}});
  ASSERT_NE(sweep, nullptr);
  EXPECT_EQ(sweep->device, 1U);
  std::vector<double> times;
  for (const CampaignItem& item : plan.result().items) times.push_back(item.median_us);
  EXPECT_THAT(times, ElementsAre(0, 0, 0, 7));
  EXPECT_EQ(plan.take_failed_sweep(0, {.problems = {sum_of(1024)}, .may_change = {true}}, "it hung").failure,
            "it hung");
  EXPECT_THAT(plan.result().sweeps, SizeIs(2));
}

}  // namespace
}  // namespace hone::tuner
