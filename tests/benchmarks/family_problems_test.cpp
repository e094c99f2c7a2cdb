#include "benchmarks/common/family_problems.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <hone/kernel_family.h>
#include <hone/sdk/family_table.h>

namespace hone::benchmarks {
namespace {

TEST(FamilyProblems, EveryFamilyHasTwoThatItAccepts) {
  for (const bool is_small : {false, true}) {
    const std::vector<Problem> problems = family_problems(is_small);
    for (const Problem& problem : problems) EXPECT_EQ(refusal_of(problem), "") << to_string(problem);
    for (const FamilyRow& row : built_in_families())
      EXPECT_GE(std::count_if(problems.begin(), problems.end(),
                              [&](const Problem& problem) { return problem.family == &row.family(); }),
                2)
          << row.family().name();
  }
}

}  // namespace
}  // namespace hone::benchmarks
