#include "runtime/choose/result_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <hone/hone.h>

#include "runtime/families/reduce_axis/axis_family.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

Problem sums(std::int64_t n) { return reduce_problem({.op = ReduceOp::sum, .dtype = DType::f32}, n); }

TEST(ResultChecks, EveryProblemComesWithItsFirstKindBeforeAnyWithItsSecond) {
  const Problem problem = sums(100000);
  const std::size_t problems = problem.family->verifier().verified_problems(problem).size();
  const auto kinds = problem.family->verifier().input_kinds(problem);
  ASSERT_GT(problems, 1u);
  ASSERT_GT(kinds.size(), 1u);
  const Policy policy = problem.family->space().all().front();
  const std::vector<ResultCheck> checks = result_checks(problem, policy, problem.family->unit(problem, policy));
  ASSERT_THAT(checks, SizeIs(problems * kinds.size()));
  for (std::size_t i = 0; i < checks.size(); ++i) EXPECT_EQ(checks[i].kind, kinds[i / problems]) << i;
  EXPECT_EQ(checks[0].problem.extents, problem.extents) << "its own size is the first";
}

/// Rows of three columns are in a class with those of five, of which narrow tiles have one. They have four rows of two.
TEST(ResultChecks, WhatOtherCodeServesIsNoProblemOfThePolicy) {
  const Problem problem = reduce_columns_problem(
      {.op = ReduceOp::mean_variance, .dtype = DType::f64, .numerics = Numerics::reproducible},
      {.outer = 2, .reduced = 2303, .inner = 3});
  const auto inner_extents = [&](int block_threads) {
    const Policy policy =
        Policy::of(ColumnsPolicy{.block_threads = block_threads, .threads_per_column = 16, .unroll = 16});
    std::set<std::int64_t> extents;
    for (const ResultCheck& check : result_checks(problem, policy, problem.family->unit(problem, policy)))
      if (check.problem.pitches[0] == 0) extents.insert(check.problem.extents[2]);
    return extents;
  };
  EXPECT_THAT(inner_extents(512), ElementsAre(2, 3));
  EXPECT_THAT(inner_extents(128), ElementsAre(3));
}

TEST(ResultChecks, SmallProblemsAreServedByTheSamePolicy) {
  const std::vector<Problem> problems{
      sums(100'000'001), sums((1 << 26) - 2),
      reduce_rows_problem({.op = ReduceOp::mean, .dtype = DType::f16}, {.rows = 5001, .columns = 4096}),
      reduce_columns_problem({.op = ReduceOp::sum, .dtype = DType::f64}, {.reduced = 3, .inner = 10'000'000}),
      softmax_problem({.dtype = DType::f32}, SoftmaxShape::rows(1 << 15, 4097))};
  for (const Problem& problem : problems) {
    int served = 0;
    for (const Policy& policy : allowed_policies(problem, h100_facts())) {
      const Problem small = small_problem(h100_facts(), problem, policy);
      EXPECT_EQ(problem.family->refuse(small), "");
      EXPECT_EQ(problem.family->is_valid(small, policy, h100_facts()), "");
      EXPECT_TRUE(problem.family->is_served_by(small, policy, problem.family->unit(problem, policy)));
      for (std::size_t axis = 0; axis < 3; ++axis) {
        EXPECT_LE(small.extents[axis], problem.extents[axis]);
        EXPECT_EQ(small.extents[axis] % 2, problem.extents[axis] % 2);
      }
      served += problem.family->bytes_moved(small) <= 1 << 17;
    }
    EXPECT_GT(served, 0) << to_string(problem);
  }
}

TEST(ResultChecks, WhatIsSmallStaysAsItIs) {
  const Problem problem = sums(1000);
  const Policy policy = allowed_policies(problem, h100_facts()).front();
  EXPECT_EQ(small_problem(h100_facts(), problem, policy).extents, problem.extents);
}

}  // namespace
}  // namespace hone
