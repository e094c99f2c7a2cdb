// The checks that calls make of their arrays.
#include "runtime/dispatch/call_checks.h"

#include <gtest/gtest.h>

#include <cstdint>

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

}  // namespace
}  // namespace hone
