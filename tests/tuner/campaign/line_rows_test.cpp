#include "tuner/campaign/line_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hone/reduce_axis.h>
#include <hone/tuned_reduce.h>

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Problem> sums_of(const std::vector<std::int64_t>& sizes) {
  std::vector<Problem> problems;
  for (const std::int64_t n : sizes) problems.push_back(reduce_problem(ReduceOp::sum, DType::f32, n));
  return problems;
}

LineRows rows_of(const std::vector<Problem>& problems, std::optional<std::size_t> axis = 0) {
  return list_rows(problems, std::vector<bool>(problems.size(), true), axis, [](const Problem&) { return true; });
}

std::vector<std::int64_t> sizes_of(const std::vector<Row>& rows) {
  std::vector<std::int64_t> sizes;
  for (const Row& row : rows) sizes.push_back(row.problem.extents[0]);
  return sizes;
}

TEST(LineRows, WhatLiesBetweenTwoOctavesIsMeasuredInTheOrderOfTheSizes) {
  const LineRows rows = rows_of(sums_of({1024, 2048, 4096}));
  EXPECT_THAT(sizes_of(rows.measured), ElementsAre(1024, 1448, 2048, 2896, 4096));
  EXPECT_THAT(rows.unmeasured, IsEmpty());
  EXPECT_TRUE(rows.measured[2].is_tuned);
  EXPECT_EQ(rows.measured[2].server, 1U);
  EXPECT_FALSE(rows.measured[3].is_tuned);
  EXPECT_EQ(rows.measured[3].server, 2U) << "the next larger one's winner, until more is known";
}

TEST(LineRows, OfAWideGapAFewAreMeasuredAndTheOthersAreServed) {
  const LineRows rows = rows_of(sums_of({1 << 10, 1 << 14}));
  EXPECT_THAT(sizes_of(rows.measured), ElementsAre(1024, 2896, 5792, 11585, 16384));
  EXPECT_EQ(rows.unmeasured.size(), 4U);
}

TEST(LineRows, WhatIsNotWantedIsLeftOut) {
  const std::vector<Problem> problems = sums_of({1024, 4096});
  const LineRows rows = list_rows(problems, {true, false}, 0,
                                  [](const Problem& problem) { return problem.extents[0] > 2000; });
  EXPECT_THAT(sizes_of(rows.measured), ElementsAre(1024, 2048, 2896, 4096));
  EXPECT_TRUE(rows.measured.front().may_change);
  EXPECT_FALSE(rows.measured.back().may_change);
}

TEST(LineRows, WithoutAnOrderOnlyTheTunedShapesAreMeasured) {
  std::vector<Problem> problems;
  for (const std::int64_t rows : {16, 64})
    for (const std::int64_t columns : {16, 64})
      problems.push_back(reduce_rows_problem({.op = ReduceOp::sum, .dtype = DType::f32},
                                             {.rows = rows, .columns = columns}));
  const LineRows rows = rows_of(problems, std::nullopt);
  EXPECT_EQ(rows.measured.size(), 4U);
  EXPECT_EQ(rows.unmeasured.size(), 5U);
}

}  // namespace
}  // namespace hone::tuner
