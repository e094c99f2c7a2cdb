// When a search ends, and what it leaves out, by numbers alone.
#include "runtime/choose/stopping_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

namespace hone {
namespace {

using testing::HasSubstr;

constexpr double kRooflineUs = 10;

class StoppingRuleTest : public testing::Test {
 protected:
  /// `gain` is what the policies that are left promise; nullopt: none is left.
  static std::optional<SearchEnd> end(const StoppingRule& rule, const SearchState& state, std::optional<double> gain) {
    return rule.end(state, [&] { return gain; });
  }

  const StoppingRule rule_{kRooflineUs, false};
  const StoppingRule all_{kRooflineUs, true};
  const SearchState begun_{.measured = 20, .candidates = 1000, .leader_us = 50, .has_candidates = true};
  const SearchState begun_in_campaign_ = [this] {
    SearchState state = begun_;
    state.others_wait = true;
    return state;
  }();
};

TEST_F(StoppingRuleTest, TheRooflineIsReachedWithinHalfAPercent) {
  EXPECT_TRUE(rule_.is_at_roofline(10.04));
  EXPECT_FALSE(rule_.is_at_roofline(10.06));
  EXPECT_FALSE(rule_.is_at_roofline(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(StoppingRule(0, false).is_at_roofline(0.001)) << "an unknown bandwidth is no roofline";
}

TEST_F(StoppingRuleTest, TheFirstCandidatesAreMeasuredWhateverIsExpected) {
  EXPECT_EQ(rule_.why_not({}, false, {.us = 900}), "");
  SearchState state{.measured = 11, .leader_us = 50, .has_candidates = true};
  EXPECT_EQ(rule_.why_not(state, false, {.us = 900}), "");
  state.measured = 12;
  EXPECT_NE(rule_.why_not(state, false, {.us = 900}), "");
}

TEST_F(StoppingRuleTest, TheFurtherTheModelWasOffTheMoreIsMeasuredFirst) {
  SearchState state{.measured = 50,
                    .policies = 400,
                    .candidates = 400,
                    .model_error = 0.05,
                    .leader_us = 50,
                    .has_candidates = true};
  EXPECT_EQ(StoppingRule::fewest_measured(state), 12);
  EXPECT_NE(rule_.why_not(state, false, {.us = 900}), "");
  EXPECT_EQ(end(rule_, state, 0.0), SearchEnd::rest_expected_slower);
  state.model_error = 0.3;
  EXPECT_EQ(StoppingRule::fewest_measured(state), 60);
  EXPECT_EQ(rule_.why_not(state, false, {.us = 900}), "");
  EXPECT_EQ(end(rule_, state, 0.0), std::nullopt);
  state.model_error = 3;
  EXPECT_EQ(StoppingRule::fewest_measured(state), 60) << "a seventh is the most";
  state.policies = 30;
  EXPECT_EQ(StoppingRule::fewest_measured(state), 12) << "a small space has a floor";
}

TEST_F(StoppingRuleTest, TheMoreWasMeasuredTheMoreACandidateMustPromise) {
  SearchState state{.measured = 33, .policies = 200, .candidates = 200, .leader_us = 50, .has_candidates = true};
  EXPECT_EQ(rule_.why_not(state, false, {.us = 50, .gain = 0.003}), "");
  state.measured = 34;
  EXPECT_NE(rule_.why_not(state, false, {.us = 50, .gain = 0.003}), "");
  EXPECT_EQ(rule_.why_not(state, false, {.us = 50, .gain = 0.011}), "");
  EXPECT_EQ(end(rule_, state, 0.003), SearchEnd::rest_expected_slower);
  EXPECT_EQ(end(rule_, state, 0.011), std::nullopt);
  state.measured = 40;
  EXPECT_NE(rule_.why_not(state, true, {.us = 40, .gain = 0.2}), "") << "a fifth is enough";
  EXPECT_EQ(end(rule_, state, 0.2), SearchEnd::rest_expected_slower);
  EXPECT_EQ(all_.why_not(state, false, {.us = 900}), "") << "unless all are to be measured";
  state = {.measured = 15, .policies = 20, .candidates = 20, .leader_us = 50, .has_candidates = true};
  EXPECT_EQ(rule_.why_not(state, true, {.us = 50}), "") << "a small space has a floor";
}

TEST_F(StoppingRuleTest, WhereOthersWaitAFifthOfAPercentIsWorthAMeasurement) {
  EXPECT_EQ(rule_.why_not(begun_in_campaign_, false, {.us = 49, .gain = 0.0021}), "");
  const std::string why = rule_.why_not(begun_in_campaign_, false, {.us = 51.5, .gain = 0.0019}).text();
  EXPECT_THAT(why, HasSubstr("51.50 µs"));
  EXPECT_THAT(why, HasSubstr("50.00"));
  EXPECT_THAT(why, HasSubstr("0.19 %"));
}

TEST_F(StoppingRuleTest, WhereNoneWaitsATenthOfThatIs) {
  EXPECT_EQ(rule_.why_not(begun_, false, {.us = 50.5, .gain = 0.00021}), "");
  EXPECT_NE(rule_.why_not(begun_, false, {.us = 50.5, .gain = 0.00019}), "");
  EXPECT_EQ(end(rule_, begun_, 0.00021), std::nullopt);
  EXPECT_EQ(end(rule_, begun_, 0.00019), SearchEnd::rest_expected_slower);
}

TEST_F(StoppingRuleTest, WhatMustBeMeasuredIsUnlessTheLeaderIsAtTheRoofline) {
  EXPECT_EQ(rule_.why_not(begun_, true, {.us = 900}), "");
  SearchState state = begun_;
  state.leader_us = kRooflineUs;
  EXPECT_NE(rule_.why_not(state, true, {.us = 900}), "");
}

TEST_F(StoppingRuleTest, ASearchThatMeasuresAllLeavesNothingOut) {
  SearchState state = begun_;
  state.leader_us = kRooflineUs;
  EXPECT_EQ(all_.why_not(state, false, {.us = 900}), "");
  EXPECT_EQ(end(all_, state, 0.0), std::nullopt);
}

TEST_F(StoppingRuleTest, ItEndsWhenTheRestPromisesNothing) {
  EXPECT_EQ(end(rule_, begun_in_campaign_, 0.0019), SearchEnd::rest_expected_slower);
  EXPECT_EQ(end(rule_, begun_in_campaign_, 0.0021), std::nullopt);
  EXPECT_EQ(end(rule_, begun_, std::nullopt), std::nullopt) << "nothing is left: the queue says so itself";
}

TEST_F(StoppingRuleTest, ItEndsAtTheRooflineWithoutAskingForTheRest) {
  SearchState state = begun_;
  state.leader_us = kRooflineUs;
  EXPECT_EQ(rule_.end(state,
                      []() -> std::optional<double> {
                        ADD_FAILURE() << "that takes long";
                        return 0;
                      }),
            SearchEnd::near_roofline);
}

TEST_F(StoppingRuleTest, ItGoesOnBeforeEnoughWasMeasured) {
  EXPECT_EQ(end(rule_, {.measured = 11, .leader_us = 50, .has_candidates = true}, 0.0), std::nullopt);
  EXPECT_EQ(end(rule_, {.measured = 20, .leader_us = 50, .has_candidates = false}, 0.0), std::nullopt);
}

TEST_F(StoppingRuleTest, TheCallerAndTheBudgetEndEverySearch) {
  for (const StoppingRule& rule : {rule_, all_}) {
    EXPECT_EQ(end(rule, {.is_stopped = true, .is_late = true}, 1.0), SearchEnd::stopped);
    EXPECT_EQ(end(rule, {.is_late = true}, 1.0), SearchEnd::budget_spent);
  }
}

TEST_F(StoppingRuleTest, WhatIsLeftKnowsWhy) {
  EXPECT_THAT(why_not_compiled(SearchEnd::rest_expected_slower, 12.5).text(), HasSubstr("12.50 µs"));
  EXPECT_NE(why_not_compiled(SearchEnd::stopped, 1), why_not_compiled(SearchEnd::budget_spent, 1));
  EXPECT_NE(why_not_compiled(SearchEnd::near_roofline, 1), why_not_compiled(SearchEnd::budget_spent, 1));
}

}  // namespace
}  // namespace hone
