#include "runtime/measure/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace hone {
namespace {

using Samples = std::vector<double>;

TEST(Statistics, TheMedianIsTheMiddleOrBetweenTheTwoMiddleOnes) {
  EXPECT_EQ(median(Samples{7}), 7);
  EXPECT_EQ(median(Samples{3, 1}), 2);
  EXPECT_EQ(median(Samples{9, 1, 5}), 5);
  EXPECT_EQ(median(Samples{4, 1, 3, 2}), 2.5);
}

TEST(Statistics, OneSampleHasNoSpread) {
  const Estimate one = estimate(Samples{12.5});
  EXPECT_EQ(one.median_us, 12.5);
  EXPECT_EQ(one.spread_us, 0);
  EXPECT_EQ(one.samples, 1);
}

TEST(Statistics, ConstantSamplesHaveNoSpread) {
  const Estimate constant = estimate(Samples(20, 3.25));
  EXPECT_EQ(constant.median_us, 3.25);
  EXPECT_EQ(constant.spread_us, 0);
}

TEST(Statistics, TwoSamplesSpreadByAQuarterOfTheirDistance) {
  EXPECT_DOUBLE_EQ(half_interquartile_range(Samples{1, 3}), 0.5);
}

TEST(Statistics, OneOutlierMovesNeitherMedianNorSpread) {
  const Estimate clean = estimate(Samples{10, 10.1, 10.2, 10.1, 10, 10.2, 10.1, 10.1, 10});
  const Estimate dirty = estimate(Samples{10, 10.1, 10.2, 10.1, 10, 10.2, 10.1, 10.1, 5000});
  EXPECT_NEAR(dirty.median_us, clean.median_us, 0.01);
  EXPECT_NEAR(dirty.spread_us, clean.spread_us, 0.05);
}

TEST(Statistics, TwoModesShowInTheSpread) {
  // Recorded: 2.7 µs while the clock is high, 3.4 while it is low.
  const Estimate bimodal = estimate(Samples{2.7, 3.4, 2.7, 3.4, 2.7, 3.4, 2.7, 3.4});
  EXPECT_GT(bimodal.spread_us, 0.3);
  EXPECT_GT(bimodal.median_us, 2.69);
  EXPECT_LT(bimodal.median_us, 3.41);
}

TEST(Statistics, QuantisedSamplesKeepTheirStep) {
  // Events resolve half a microsecond.
  const Estimate quantised = estimate(Samples{4.5, 5, 4.5, 5, 5, 4.5, 5, 5, 4.5, 5});
  EXPECT_EQ(quantised.median_us, 5);
  EXPECT_EQ(quantised.spread_us, 0.25);
}

TEST(Statistics, OrderDoesNotMatter) {
  Samples samples{5, 1, 4, 2, 3, 9, 7, 8, 6};
  const Estimate before = estimate(samples);
  std::shuffle(samples.begin(), samples.end(), std::mt19937(1));
  const Estimate after = estimate(samples);
  EXPECT_EQ(before.median_us, after.median_us);
  EXPECT_EQ(before.spread_us, after.spread_us);
}

TEST(Statistics, NormalSamplesSpreadByTwoThirdsOfADeviation) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal(100, 3);
  Samples samples(100001);
  for (double& sample : samples) sample = normal(random);
  EXPECT_NEAR(half_interquartile_range(samples), 0.6745 * 3, 0.03);
}

TEST(Indistinguishable, EqualMediansAlwaysAre) {
  EXPECT_TRUE(indistinguishable({10, 0, 5}, {10, 0, 5}));
  EXPECT_TRUE(indistinguishable({10, 1, 5}, {10, 0, 1}));
}

TEST(Indistinguishable, WithoutSpreadAnyDifferenceCounts) {
  EXPECT_FALSE(indistinguishable({10, 0, 5}, {10.001, 0, 5}));
}

TEST(Indistinguishable, MoreSamplesTellMoreApart) {
  EXPECT_TRUE(indistinguishable({10, 0.5, 4}, {10.3, 0.5, 4}));
  EXPECT_FALSE(indistinguishable({10, 0.5, 400}, {10.3, 0.5, 400}));
}

TEST(Indistinguishable, TheFasterOneIsNeverToldApartFromABetterOne) {
  EXPECT_TRUE(indistinguishable({10, 0.1, 9}, {9, 0.1, 9}));
}

}  // namespace
}  // namespace hone
