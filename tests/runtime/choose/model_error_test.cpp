#include "runtime/choose/model_error.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(ModelError, FewMeasurementsLeaveEverythingPossible) {
  ModelError error;
  for (std::size_t i = 1; i < ModelError::kFewest; ++i) error.add(static_cast<double>(i), static_cast<double>(i));
  EXPECT_EQ(error.optimistic_us(50), 0);
  error.add(20, 20);
  EXPECT_DOUBLE_EQ(error.optimistic_us(50), 50);
}

TEST(ModelError, OptimismIsTheSmallestRatioButForExceptions) {
  ModelError error;
  for (int i = 1; i <= 100; ++i) error.add(i, i * (i == 50 ? 0.1 : i % 2 == 0 ? 1.5 : 0.8));
  EXPECT_NEAR(error.optimistic_us(10), 8, 1e-9);
}

TEST(ModelError, AModelThatOrdersByChanceRulesNothingOut) {
  ModelError flat;
  for (int i = 1; i <= 30; ++i) flat.add(i, 20);
  EXPECT_EQ(flat.optimistic_us(100), 0);
  ModelError opposite;
  for (int i = 1; i <= 30; ++i) opposite.add(i, 40 - i);
  EXPECT_LT(opposite.rank_correlation(), -0.99);
  EXPECT_EQ(opposite.optimistic_us(100), 0);
}

TEST(ModelError, TimesThatAreNotKnownDoNotCount) {
  ModelError error;
  for (int i = 0; i < 20; ++i) error.add(i % 2 == 0 ? 0 : 5, i % 2 == 0 ? 5 : 0);
  EXPECT_EQ(error.optimistic_us(5), 0);
  EXPECT_EQ(error.rank_correlation(), 0);
}

}  // namespace
}  // namespace hone
