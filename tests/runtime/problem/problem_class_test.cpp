#include <hone/problem_class.h>

#include <gmock/gmock.h>

#include <limits>

#include <hone/reduce_axis.h>
#include <hone/tuned_reduce.h>

#include "tests/support/names.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using test::Names;

Problem sum_of(std::int64_t n) { return reduce_problem(ReduceOp::sum, DType::f32, n); }
Problem row_sums(std::int64_t rows, std::int64_t columns) {
  return reduce_rows_problem({}, {.rows = rows, .columns = columns}, 4);
}

TEST(ProblemClass, IsTheSameForAllMembers) {
  for (const Extents extents : {Extents{1000, 1, 1}, Extents{7, 1, 1}, Extents{0, 1, 1}, Extents{1, 1000003, 1},
                                Extents{1024, 1100, 1}, Extents{0, 5, 1},
                                Extents{std::numeric_limits<std::int64_t>::max(), 1, 1}}) {
    Problem problem = row_sums(1, 1);
    problem.extents = extents;
    const ProblemClass problem_class = problem;
    EXPECT_EQ(ProblemClass(problem_class.typical()), problem_class) << to_string(problem);
    for (const Problem& corner : problem_class.corners()) {
      EXPECT_EQ(ProblemClass(corner), problem_class) << to_string(corner);
      EXPECT_EQ(ProblemClass(corner).typical().extents, problem_class.typical().extents) << to_string(corner);
    }
  }
}

TEST(ProblemClass, HasACornerForEveryEndOfEveryRange) {
  EXPECT_EQ(ProblemClass(sum_of(1 << 20)).corners().size(), 2u);
  EXPECT_EQ(ProblemClass(row_sums(100, 100)).corners().size(), 4u);
  EXPECT_EQ(ProblemClass(row_sums(1, 100)).corners().size(), 2u) << "one row is a class of its own";
}

TEST(ProblemClass, PitchesAndScalarsAreTheCalls) {
  Problem pitched = row_sums(100, 100);
  pitched.pitches = {128, 0};
  pitched.scalars = {2.0};
  EXPECT_EQ(ProblemClass(pitched), ProblemClass(row_sums(100, 100)));
  EXPECT_EQ(ProblemClass(pitched).typical().pitches, Pitches{});
}

TEST(ProblemClass, SaysWhatTwoClassesDifferIn) {
  const ProblemClass sum = sum_of(1 << 20);
  EXPECT_EQ(sum.difference(sum_of((1 << 20) + 1)), "");
  EXPECT_THAT(sum.difference(row_sums(10, 10)), Names("reduce,", "reduce_rows"));
  EXPECT_THAT(sum.difference(sum_of(1 << 21)), Names("size", "class"));
  Problem other = sum_of(1 << 20);
  other.dtype = DType::f16;
  other.result = DType::f64;
  other.nan = NanPolicy::ignore;
  other.alignment = 4;
  other.launch_context = LaunchContext::graph;
  EXPECT_THAT(sum.difference(other),
              Names("dtype", "f32", "not f16", "result", "not f64", "NaN", "not ignore", "alignment", "16 bytes",
                    "4 bytes", "launch", "stream", "not graph"));
}

}  // namespace
}  // namespace hone
