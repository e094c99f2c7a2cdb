#include "tuner/problems/problem_text.h"

#include <gtest/gtest.h>
#include <hone/tuned_reduce.h>


namespace hone::tuner {
namespace {

Problem unusual() {
  Problem problem = reduce_problem(ReduceSpec{.op = ReduceOp::sum,
                                              .dtype = DType::f16,
                                              .nan = NanPolicy::ignore,
                                              .accumulator = DType::f64,
                                              .result = DType::f64},
                                   1000, 2);
  problem.launch_context = LaunchContext::graph;
  return problem;
}

cache::ProblemRecord record() {
  return {.family = "reduce",
          .operation = "sum",
          .dtype = "f16 in f64 to f64",
          .numerics = "fast, NaN ignored",
          .launch_context = "graph",
          .alignment = 2,
          .sizes = {{{940, 1116}, {1, 1}, {1, 1}}}};
}

TEST(ProblemText, RowsOfTheCacheAreProblems) {
  const std::optional<Problem> problem = problem_of(record(), {1000, 1, 1});
  ASSERT_TRUE(problem);
  EXPECT_TRUE(same_sweep(*problem, unusual()));
  EXPECT_TRUE(is_described(unusual(), record()));
  Problem larger = unusual();
  larger.extents[0] = 1449;
  EXPECT_FALSE(is_described(larger, record()));
  EXPECT_FALSE(is_described(reduce_problem(ReduceOp::sum, DType::f16, 1000), record()));
}

TEST(ProblemText, RowsOfOthersAreNone) {
  const auto changed = [](auto change) {
    cache::ProblemRecord row = record();
    change(row);
    return problem_of(row, {1000, 1, 1});
  };
  EXPECT_FALSE(changed([](auto& row) { row.family = "scan"; }));
  EXPECT_FALSE(changed([](auto& row) { row.operation = "median"; }));
  EXPECT_FALSE(changed([](auto& row) { row.dtype = "f12"; }));
  EXPECT_FALSE(changed([](auto& row) { row.dtype = "f16 in f12"; }));
  EXPECT_FALSE(changed([](auto& row) { row.numerics = "unknown"; }));
  EXPECT_FALSE(changed([](auto& row) { row.launch_context = "loop"; }));
}

}  // namespace
}  // namespace hone::tuner
