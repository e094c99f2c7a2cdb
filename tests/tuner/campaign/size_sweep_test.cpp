#include "tuner/campaign/size_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hone/reduce_axis.h>
#include <hone/transpose.h>
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

SizeSweep rows_of(const std::vector<Problem>& problems, std::optional<std::size_t> axis = 0) {
  return list_sweep(problems, std::vector<bool>(problems.size(), true), axis, [](const Problem&) { return true; });
}

std::vector<std::int64_t> sizes_of(const std::vector<SweepRow>& rows) {
  std::vector<std::int64_t> sizes;
  for (const SweepRow& row : rows) sizes.push_back(row.problem.extents[0]);
  return sizes;
}

std::vector<std::int64_t> measured_sizes(const SizeSweep& rows) {
  std::vector<SweepRow> measured = rows.compared;
  std::erase_if(measured, [](const SweepRow& row) { return !row.is_measured; });
  return sizes_of(measured);
}

TEST(SizeSweep, RowsAscendAndWhatLiesBetweenTwoOctavesIsMeasured) {
  const SizeSweep rows = rows_of(sums_of({1024, 2048, 4096}));
  EXPECT_THAT(sizes_of(rows.compared), ElementsAre(1024, 1217, 1448, 1722, 2048, 2435, 2896, 3444, 4096));
  EXPECT_EQ(measured_sizes(rows), sizes_of(rows.compared));
  EXPECT_THAT(rows.between, IsEmpty());
  EXPECT_TRUE(rows.compared[4].is_tuned);
  EXPECT_EQ(rows.compared[4].nearest_winner, 1U);
  EXPECT_FALSE(rows.compared[5].is_tuned);
  EXPECT_EQ(rows.compared[5].nearest_winner, 2U) << "the next larger one's winner, until more is known";
}

TEST(SizeSweep, OfAWideGapAFewAreMeasured) {
  const SizeSweep rows = rows_of(sums_of({1 << 10, 1 << 14}));
  EXPECT_THAT(measured_sizes(rows), ElementsAre(1024, 2048, 4096, 8192, 16384));
  EXPECT_EQ(rows.compared.size(), 17U);
}

TEST(SizeSweep, CenterIsTheMiddleOfThoseMeasuredBetweenTwoTunedOnes) {
  const auto centers = [](const std::vector<std::int64_t>& sizes) {
    std::vector<SweepRow> rows = rows_of(sums_of(sizes)).compared;
    std::erase_if(rows, [](const SweepRow& row) { return !row.is_center; });
    return sizes_of(rows);
  };
  EXPECT_THAT(centers({1024, 2048, 4096}), ElementsAre(1448, 2896));
  EXPECT_THAT(centers({1 << 10, 1 << 14}), ElementsAre(4096));
  EXPECT_THAT(centers({1024, 1448}), ElementsAre(1217)) << "the only one";
}

TEST(SizeSweep, WhatIsNotWantedIsLeftOut) {
  const std::vector<Problem> problems = sums_of({1024, 4096});
  const SizeSweep rows =
      list_sweep(problems, {true, false}, 0, [](const Problem& problem) { return problem.extents[0] > 2000; });
  EXPECT_THAT(sizes_of(rows.compared), ElementsAre(1024, 2048, 2435, 2896, 3444, 4096));
  EXPECT_TRUE(rows.compared.front().may_change);
  EXPECT_FALSE(rows.compared.back().may_change);
}

TEST(SizeSweep, WithoutAnOrderSomethingIsChosenForTheTunedShapesAlone) {
  std::vector<Problem> problems;
  for (const std::int64_t rows : {16, 64})
    for (const std::int64_t columns : {16, 64})
      problems.push_back(reduce_rows_problem({.op = ReduceOp::sum, .dtype = DType::f32},
                                             {.rows = rows, .columns = columns}));
  const SizeSweep rows = rows_of(problems, std::nullopt);
  EXPECT_EQ(rows.compared.size(), 4U);
  EXPECT_EQ(rows.between.size(), 5U);
}

TEST(LargestCorner, HasRowsThatAreAlignedAlike) {
  const auto corner_of = [](std::int64_t rows, std::int64_t columns) {
    const ReduceSpec spec{.op = ReduceOp::sum, .dtype = DType::f32};
    const std::optional<Problem> corner = largest_corner(reduce_rows_problem(spec, {.rows = rows, .columns = columns}));
    return corner ? corner->extents : Extents{};
  };
  EXPECT_EQ(corner_of(256, 1024), (Extents{352, 1440, 1})) << "of 362 × 1448";
  EXPECT_EQ(corner_of(257, 1028), (Extents{362, 1448, 1}));
  EXPECT_EQ(corner_of(257, 1027), (Extents{362, 1448, 1})) << "rows that are not aligned end anywhere";
  EXPECT_EQ(corner_of(1, 1024), (Extents{1, 1440, 1}));
}

TEST(LargestCorner, IsWhereTheFamilyHasWorkToDo) {
  EXPECT_EQ(largest_corner(reduce_problem(ReduceOp::sum, DType::f32, 1024)), std::nullopt) << "a lone extent";
  Problem square = transpose_problem({.rows = 64, .columns = 64}, kMaxAlignment, true);
  EXPECT_NE(largest_corner(square), std::nullopt);
  square.extents = {1, 64, 256};
  EXPECT_EQ(largest_corner(square), std::nullopt) << "what is not square has no place in itself";
}

}  // namespace
}  // namespace hone::tuner
