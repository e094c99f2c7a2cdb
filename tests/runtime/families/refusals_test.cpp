// Every family refuses these problems alike.
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hone/copy_spec.h>
#include <hone/kernel_family.h>
#include <hone/reduce_spec.h>
#include <hone/rms_norm.h>
#include <hone/softmax_spec.h>
#include <hone/transpose_spec.h>

#include "tests/runtime/support/every_family.h"
#include "tests/support/names.h"

namespace hone {
namespace {

TEST(EveryFamily, RefusesProblemsThatNoneCanHave) {
  for (const Problem& problem : sample_problems()) {
    const KernelFamily& family = *problem.family;
    ASSERT_EQ(family.refuse(problem), "");
    Problem other = problem;
    other.operation = static_cast<std::uint8_t>(family.operations().size());
    EXPECT_THAT(family.refuse(other), Names(family.name(), "no operation"));
    for (std::size_t i = 0; i < problem.extents.size(); ++i) {
      other = problem;
      other.extents[i] = -7;
      EXPECT_THAT(family.refuse(other), Names(family.name(), "-7", "negative")) << i;
      if (i < family.extent_names().size()) continue;
      other.extents[i] = 7;
      EXPECT_THAT(family.refuse(other), Names(family.name(), "extents", family.extent_names().back())) << i;
    }
  }
}

TEST(EveryFamily, NamesTheNumbersOfItsProblems) {
  for (Problem problem : sample_problems()) {
    const auto names = problem.family->scalar_names();
    for (std::size_t i = 0; i < problem.scalars.size(); ++i) {
      EXPECT_TRUE(!problem.scalars[i] || i < names.size()) << to_string(problem);
      problem.scalars[i] = 0.5;
      if (i >= names.size()) continue;
      EXPECT_THAT(to_string(problem), Names(std::string(names[i]) + "=0.5"));
    }
  }
}

TEST(EveryFamily, RefusesAnAlignmentThatRowsDoNotHave) {
  const RmsNormSpec norm{.dtype = DType::f32, .rows = 8, .columns = 7};
  for (Problem problem :
       {reduce_rows_problem({}, {8, 7}), reduce_columns_problem({}, {.outer = 2, .reduced = 3, .inner = 7}),
        softmax_problem({}, SoftmaxShape::rows(8, 7)), rms_norm_problem(norm, true, false),
        transpose_problem({.rows = 8, .columns = 7}), copy_problem({.rows = 8, .columns = 7, .in_pitch = 8})}) {
    ASSERT_EQ(problem.family->refuse(problem), "");
    ASSERT_LT(problem.alignment, 16u) << to_string(problem);
    problem.alignment = 16;
    EXPECT_THAT(problem.family->refuse(problem), Names(problem.family->name(), "rows", "4 bytes", "not 16"));
  }
}

}  // namespace
}  // namespace hone
