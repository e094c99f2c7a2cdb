#include "tuner/winners/loan_regrets.h"

#include <gmock/gmock.h>

#include <hone/reduce_spec.h>
#include <hone/sdk/known_gpus.h>

#include <string_view>
#include <utility>
#include <vector>

namespace hone::tuner {
namespace {

using Times = std::vector<std::pair<std::string_view, double>>;

constexpr std::string_view kFast =
    "block_threads=512 vector_bytes=16 unroll=4 tail=warp finish=last_block min_blocks=1";
constexpr std::string_view kSlow =
    "block_threads=256 vector_bytes=16 unroll=2 tail=warp finish=last_block min_blocks=1";

/// The first is the winner; the last was the model's choice.
TunedClass tuned(ReduceOp op, std::int64_t n, std::uint32_t alignment, const Times& times) {
  TunedClass tuned;
  tuned.winner.problem = reduce_problem({.op = op}, n, alignment);
  tuned.winner.device = find_known_gpu("h100")->facts;
  for (const auto& [policy, us] : times)
    tuned.trials.push_back({.candidate = {tuned.winner.problem.family->space().parse(policy).value(), {132}},
                            .resident_blocks = 2,
                            .median_us = us,
                            .verdict = Verdict::ok});
  tuned.trials.back().is_default = true;
  tuned.winner.winner = {.candidate = tuned.trials.front().candidate,
                         .resident_blocks = 2,
                         .tuned = true,
                         .tuned_extents = tuned.winner.problem.extents,
                         .sizes = size_ranges(tuned.winner.problem.extents)};
  return tuned;
}

const LoanRegrets& row(const std::vector<LoanRegrets>& rows, std::string_view kind) {
  return *std::find_if(rows.begin(), rows.end(), [&](const LoanRegrets& each) { return each.kind == kind; });
}

TEST(LoanRegrets, AreTheLendersTimeAtTheBorrower) {
  const auto rows = loan_regrets({tuned(ReduceOp::sum, 1 << 20, 16, {{kFast, 8}, {kSlow, 10}}),
                                  tuned(ReduceOp::sum, 1 << 20, 4, {{kSlow, 9}, {kFast, 9.9}})});
  const LoanRegrets& alignment = row(rows, "alignment");
  ASSERT_EQ(alignment.judged.size(), 2u);
  EXPECT_NEAR(alignment.judged[0].regret, 10 / 8.0 - 1, 1e-9);
  EXPECT_NEAR(alignment.judged[1].regret, 9.9 / 9 - 1, 1e-9);
  EXPECT_EQ(alignment.worst(), &alignment.judged[0]);
  EXPECT_NEAR(alignment.mean(), (0.25 + 0.1) / 2, 1e-9);
  EXPECT_NEAR(row(rows, "model").mean(), (0.25 + 0.1) / 2, 1e-9);
  EXPECT_EQ(row(rows, "shape").worst(), nullptr);
  EXPECT_EQ(row(rows, "shape").unjudged, 0);
}

TEST(LoanRegrets, ACandidateThatWasNotMeasuredThereIsNotJudged) {
  const auto rows = loan_regrets({tuned(ReduceOp::max, 1 << 20, 16, {{kFast, 8}}),
                                  tuned(ReduceOp::min, 1 << 20, 16, {{kSlow, 9}, {kFast, 9}})});
  EXPECT_EQ(row(rows, "operation").unjudged, 1);
  ASSERT_EQ(row(rows, "operation").judged.size(), 1u);
  EXPECT_EQ(row(rows, "operation").judged[0].regret, 0);
}

TEST(LoanRegrets, WhatMayNotBeLentIsNoLoan) {
  const auto rows = loan_regrets({tuned(ReduceOp::argmax, 1 << 20, 16, {{kFast, 8}}),
                                  tuned(ReduceOp::sum, 1 << 20, 16, {{kSlow, 9}})});
  EXPECT_EQ(row(rows, "operation").unjudged, 0);
  EXPECT_TRUE(row(rows, "operation").judged.empty());
}

TEST(LoanRegrets, OtherDevicesAreAKindOfTheirOwn) {
  TunedClass other = tuned(ReduceOp::sum, 1 << 20, 16, {{kFast, 8}});
  other.winner.device = find_known_gpu("h200")->facts;
  const auto rows = loan_regrets({tuned(ReduceOp::sum, 1 << 20, 16, {{kSlow, 9}, {kFast, 10}}), other});
  ASSERT_EQ(row(rows, "device").judged.size(), 1u);
  EXPECT_NEAR(row(rows, "device").worst()->regret, 10 / 9.0 - 1, 1e-9);
  EXPECT_EQ(row(rows, "device").unjudged, 1);
}

}  // namespace
}  // namespace hone::tuner
