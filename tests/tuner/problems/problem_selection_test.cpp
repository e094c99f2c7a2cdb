// Problems of families with one, two and three extents, as options and campaign files name them.
#include "tuner/problems/problem_selection.h"

#include <gmock/gmock.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tests/runtime/support/total_family.h"
#include "tests/support/names.h"
#include "tuner/campaign/campaign_plan.h"
#include "tuner/campaign/problem_json.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using ::testing::ElementsAre;
using test::Names;

const KernelFamily& line() {
  static const TotalFamily family({.name = "line"});
  return family;
}
const KernelFamily& rows() {
  static const TotalFamily family(
      {.name = "rows", .is_reproducible = true, .extent_names = {"rows", "columns"}});
  return family;
}
const KernelFamily& total() {
  static const TotalFamily family({.name = "total", .extent_names = {"batch", "rows", "columns"}});
  return family;
}
/// Rows of an odd number of elements begin at multiples of 4 bytes alone.
Problem with_row_alignment(const Problem& problem) {
  Problem called = problem;
  if (problem.extents[1] % 2 == 1) called.alignment = 4;
  return called;
}

const std::array<FamilyRow, 3> kFamilies{{{&line, "total", "i32", "1024"},
                                              {&rows, "total", "i32", "8x8", &with_row_alignment},
                                              {&total, "total", "i32", "8x8"}}};

std::vector<Extents> selected_extents(const Selection& selection) {
  std::vector<Extents> extents;
  for (const Problem& problem : list_problems(selection, kFamilies)) extents.push_back(problem.extents);
  return extents;
}

std::string refusal(const Selection& selection, Families families = kFamilies) {
  try {
    list_problems(selection, families);
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "no refusal";
}

TEST(ListProblems, ShapesAreThoseOfTheFamily) {
  EXPECT_THAT(selected_extents({.family = "line", .sizes = "8,16"}), ElementsAre(Extents{8, 1, 1}, Extents{16, 1, 1}));
  EXPECT_THAT(selected_extents({.family = "rows", .sizes = "2^10x1,1x2^10"}),
              ElementsAre(Extents{1, 1024, 1}, Extents{1024, 1, 1}));
  EXPECT_THAT(selected_extents({.family = "total", .sizes = "3x4,2x3x4"}),
              ElementsAre(Extents{2, 3, 4}, Extents{1, 3, 4}));
}

TEST(ListProblems, EachFamilyHasItsOwnUsualShapes) {
  EXPECT_THAT(selected_extents({.family = "line"}), ElementsAre(Extents{1024, 1, 1}));
  EXPECT_THAT(selected_extents({.family = "total"}), ElementsAre(Extents{1, 8, 8}));
}

TEST(ListProblems, RefusalsNameTheExtentsOfTheFamily) {
  EXPECT_EQ(refusal({.family = "rows", .sizes = "1024"}),
            "rows has 2 extents (rows x columns), but 1024 has 1; give --size 2^10x2^10");
  EXPECT_EQ(refusal({.family = "line", .sizes = "32x32"}), "line has 1 extent (n), but 32x32 has 2; give --size 2^20");
  EXPECT_EQ(refusal({.family = "rows", .sizes = "2x3x4"}),
            "rows has 2 extents (rows x columns), but 2x3x4 has 3; give --size 2^10x2^10");
  EXPECT_THAT(refusal({.family = "total", .sizes = "8"}), Names("3 extents", "batch", "8", "1"));
  EXPECT_EQ(refusal({.family = "row"}),
            "unknown kernel family 'row' (did you mean 'rows'?); known are line (n), rows (rows x columns), "
            "total (batch x rows x columns); a kernel of your own is named by its file, such as row.toml");
  EXPECT_THAT(refusal({.family = "rows", .ops = "sum"}), Names("unknown", "'sum'"));
}

TEST(ListProblems, PitchesAreForFamiliesWithRows) {
  const auto pitches = [](const std::string& text) {
    return list_problems({.family = "rows", .pitch = text}, kFamilies).front().pitches;
  };
  EXPECT_EQ(pitches(""), (Pitches{0, 0}));
  EXPECT_EQ(pitches("64"), (Pitches{64, 64}));
  EXPECT_EQ(pitches("64,128"), (Pitches{64, 128}));
  EXPECT_EQ(pitches("64,0"), (Pitches{64, 0}));
  EXPECT_EQ(pitches("0,64"), (Pitches{0, 64}));
  EXPECT_THAT(refusal({.family = "line", .pitch = "64"}), Names("line", "no rows", "no pitch"));
  EXPECT_EQ(pitches("0"), (Pitches{0, 0}));
  EXPECT_THAT(refusal({.family = "rows", .pitch = "64,"}), Names("''", "size"));
}

TEST(ListProblems, AlignmentsAreThoseOfTheCalls) {
  using ColumnsAndAlignment = std::pair<std::int64_t, std::uint32_t>;
  std::vector<ColumnsAndAlignment> listed;
  for (const Problem& problem : list_problems({.family = "rows", .sizes = "64x7/8", .alignments = "all"}, kFamilies))
    listed.emplace_back(problem.extents[1], problem.alignment);
  EXPECT_THAT(listed, ElementsAre(ColumnsAndAlignment(7, 4), ColumnsAndAlignment(8, 4), ColumnsAndAlignment(8, 8),
                                  ColumnsAndAlignment(8, 16)));
}

TEST(ListProblems, NumericsAreThoseThatTheFamilyOffers) {
  EXPECT_EQ(list_problems({.family = "rows"}, kFamilies).front().numerics, Numerics::fast);
  const Problem exact = list_problems({.family = "rows", .numerics = "reproducible"}, kFamilies).front();
  EXPECT_EQ(exact.numerics, Numerics::reproducible);
  EXPECT_EQ(problem_label(exact), "rows total i32 8x8 reproducible");
  EXPECT_TRUE(same_sweep(problem_from_json(to_json(exact), kFamilies), exact));
  EXPECT_THAT(refusal({.family = "line", .numerics = "reproducible"}), Names("line", "reproducible", "total", "fast"));
  EXPECT_THAT(refusal({.family = "line", .numerics = "exact"}), Names("'exact'", "fast", "reproducible"));
  const Problem extreme = list_problems({.ops = "max", .sizes = "8", .numerics = "reproducible"}).front();
  EXPECT_EQ(extreme.numerics, Numerics::fast) << "the same in any order";
}

/// Calls have one name for each of these: other classes would have winners that no call finds.
TEST(ListProblems, ReductionsOfArraysAreThoseOfTheCalls) {
  const std::vector<Problem> sums =
      list_problems({.sizes = "8", .alignments = "all", .accumulator = "f32", .result = "f32"});
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].alignment, 4u) << "of 8 bytes, too: elements before the first pack are loaded one by one";
  EXPECT_EQ(sums[1].alignment, 16u);
  EXPECT_EQ(sums[0].accumulator, std::nullopt) << "its own";
  EXPECT_EQ(sums[0].result, std::nullopt);
  EXPECT_EQ(list_problems({.ops = "dot", .sizes = "8", .alignments = "8"}).front().alignment, 8u);
  EXPECT_EQ(list_problems({.dtypes = "i32", .sizes = "8", .nan = "ignore"}).front().nan, NanPolicy::propagate)
      << "integers are no NaNs";
  EXPECT_THAT(refusal({.family = "copy", .sizes = "8x8", .accumulator = "u32"}, built_in_families()),
              Names("--accumulator u32 is for no family"));
}

TEST(ListProblems, WhatAFamilyRefusesIsSaidWithTheFamiliesThatTakeIt) {
  const Families families = built_in_families();
  for (const char* family : {"softmax", "softmax_columns", "rms_norm", "transpose", "copy"}) {
    EXPECT_THAT(refusal({.family = family, .sizes = "8x8", .accumulator = "f64"}, families),
                Names(family, "--accumulator f64 is for reduce, reduce_rows, reduce_columns"));
    EXPECT_THAT(refusal({.family = family, .sizes = "8x8", .nan = "ignore"}, families),
                Names(family, "--nan ignore is for reduce, reduce_rows, reduce_columns"));
  }
  EXPECT_THAT(refusal({.family = "transpose", .sizes = "8x8", .result = "f64"}, families), Names("transpose", "kept"));
  const Problem named = list_problems({.family = "softmax", .dtypes = "f16", .accumulator = "f32"}, families).front();
  EXPECT_EQ(named.accumulator, std::nullopt) << "its own";
}

TEST(ProblemText, ShapesHaveLabelsAndSurviveJson) {
  Problem problem = list_problems({.family = "rows", .sizes = "2^13x64", .pitch = "128"}, kFamilies).front();
  EXPECT_EQ(problem_label(problem), "rows total i32 2^13x64 pitch 128,128");
  EXPECT_EQ(shape_text(problem), "8192x64");
  const Problem back = problem_from_json(to_json(problem), kFamilies);
  EXPECT_TRUE(same_sweep(back, problem));
  EXPECT_EQ(back.extents, problem.extents);
  EXPECT_EQ(back.pitches, problem.pitches);
  problem = list_problems({.family = "total", .sizes = "2^13x64"}, kFamilies).front();
  EXPECT_EQ(problem_label(problem), "total i32 2^13x64") << "the operation is called as the family is";
}

TEST(ProblemText, RowsOfShapesAreProblemsOfTheirFamily) {
  const cache::ProblemRecord record{.family = "rows",
                                    .operation = "total",
                                    .dtype = "i32",
                                    .numerics = "fast",
                                    .launch_context = "stream",
                                    .alignment = 16,
                                    .sizes = {{{725, 1448}, {46, 90}, {1, 1}}}};
  const std::optional<Problem> problem = problem_of(record, {1024, 64, 1}, kFamilies);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->family, &rows());
  EXPECT_TRUE(is_described(*problem, record));
  Problem transposed = *problem;
  std::swap(transposed.extents[0], transposed.extents[1]);
  EXPECT_FALSE(is_described(transposed, record));
}

TEST(OnePerSizeClass, IsOnePerBoxOfOctaves) {
  std::vector<WeightedProblem> problems;
  for (const char* sizes : {"64x64", "80x64", "64x80", "128x64", "64x1", "1x64"})
    problems.push_back({.problem = list_problems({.family = "rows", .sizes = sizes}, kFamilies).front()});
  std::vector<Extents> kept;
  for (const WeightedProblem& weighted : one_per_size_class(problems)) kept.push_back(weighted.problem.extents);
  EXPECT_THAT(kept, ElementsAre(Extents{64, 64, 1}, Extents{128, 64, 1}, Extents{64, 1, 1}, Extents{1, 64, 1}));
}

}  // namespace
}  // namespace hone::tuner
