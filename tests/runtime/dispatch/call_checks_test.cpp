// The checks that calls make of their arrays.
#include "runtime/dispatch/call_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include <hone/error.h>
#include <hone/softmax_spec.h>

#include "tests/support/names.h"

namespace hone {
namespace {

TEST(RowsOverlap, UnlessOnesLieBetweenTheOthers) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  EXPECT_FALSE(rows_overlap({at(1000), 10, 20, 5}, {at(1010), 10, 20, 5})) << "the right half of the same matrix";
  EXPECT_TRUE(rows_overlap({at(1000), 11, 20, 5}, {at(1010), 10, 20, 5}));
  EXPECT_TRUE(rows_overlap({at(1000), 10, 20, 5}, {at(1010), 11, 20, 5})) << "reaches into the next row";
  EXPECT_FALSE(rows_overlap({at(1000), 10, 10, 5}, {at(1050), 10, 10, 5}));
  EXPECT_TRUE(rows_overlap({at(1000), 10, 10, 5}, {at(1049), 10, 10, 5}));
  EXPECT_TRUE(rows_overlap({at(1049), 10, 10, 5}, {at(1000), 10, 10, 5}));
  EXPECT_TRUE(rows_overlap({at(1000), 10, 20, 5}, {at(1010), 10, 30, 5})) << "pitches differ";
  EXPECT_FALSE(rows_overlap({at(1000), 10, 20, 5}, {at(1030), 10, 10, 1})) << "one row, in a gap";
  EXPECT_FALSE(rows_overlap({at(1030), 10, 10, 1}, {at(1000), 10, 20, 5}));
  EXPECT_TRUE(rows_overlap({at(1000), 10, 20, 5}, {at(1030), 11, 11, 1}));
  EXPECT_TRUE(rows_overlap({at(1000), 10, 20, 5}, {at(1029), 10, 10, 1}));
  EXPECT_TRUE(rows_overlap({at(1000), 10, 20, 5}, {at(990), 100, 100, 1})) << "around several rows";
  EXPECT_TRUE(rows_overlap({at(1000), 10, 0, 1}, {at(1005), 10, 0, 1}));
  EXPECT_FALSE(rows_overlap({at(1000), 10, 10, 0}, {at(1000), 10, 10, 0}));
}

TEST(Call, RefusalsNameTheProblemOnce) {
  const Problem problem =
      softmax_problem({.scale = std::numeric_limits<double>::quiet_NaN()}, SoftmaxShape::rows(4, 8));
  try {
    Call{"tuned_softmax", problem}.check_problem();
    FAIL() << "it was taken";
  } catch (const Error& error) {
    const std::string text = error.what(), name = to_string(problem);
    EXPECT_THAT(text, test::Names("tuned_softmax", name, "scale is nan", "2^126"));
    EXPECT_EQ(text.find(name), text.rfind(name)) << text;
  }
}

}  // namespace
}  // namespace hone
