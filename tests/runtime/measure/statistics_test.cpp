#include "runtime/measure/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>
#include <random>
#include <vector>

#include <hone/sdk/rank_correlation.h>

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

TEST(Interval, FewSamplesAreItsEnds) {
  for (std::size_t n : {1u, 2u, 3u, 5u, 6u, 8u}) EXPECT_EQ(median_ranks(n), (RankInterval{0, n - 1})) << n;
}

TEST(Interval, TheRanksAreThoseOfTheTable) {
  // Conover, "Practical Nonparametric Statistics", table A3: 95 % intervals of the median.
  EXPECT_EQ(median_ranks(9), (RankInterval{1, 7}));
  EXPECT_EQ(median_ranks(12), (RankInterval{2, 9}));
  EXPECT_EQ(median_ranks(20), (RankInterval{5, 14}));
  EXPECT_EQ(median_ranks(50), (RankInterval{17, 32}));
  EXPECT_EQ(median_ranks(100), (RankInterval{39, 60}));
}

TEST(Interval, HoldsTheMedianAsOftenAsItSays) {
  // A distribution with a long tail, as timings have: the exponential one, whose median is ln 2.
  std::mt19937 random(3);
  std::exponential_distribution<double> tail(1);
  for (std::size_t n : {9u, 24u, 48u}) {
    int held = 0;
    for (int run = 0; run < 2000; ++run) {
      Samples samples(n);
      for (double& sample : samples) sample = tail(random);
      const Estimate result = estimate(samples);
      held += result.low_us <= std::numbers::ln2 && std::numbers::ln2 <= result.high_us;
    }
    EXPECT_GT(held, 1880) << n;  // 95 % of 2000, less than three deviations
  }
}

TEST(Interval, TwoModesAreBothWithinIt) {
  const Estimate bimodal = estimate(Samples{2.7, 3.4, 2.7, 3.4, 2.7, 3.4, 2.7, 3.4, 2.7, 3.4});
  EXPECT_EQ(bimodal.low_us, 2.7);
  EXPECT_EQ(bimodal.high_us, 3.4);
}

TEST(Interval, IsNeverNarrowerThanTheClocksStep) {
  const Estimate quantised = estimate(Samples(30, 4.5), 0.5);
  EXPECT_EQ(quantised.low_us, 4.25);
  EXPECT_EQ(quantised.high_us, 4.75);
}

TEST(Interval, OneOutlierDoesNotReachIt) {
  Samples samples(11, 10.0);
  samples[4] = 5000;
  EXPECT_EQ(estimate(samples).high_us, 10);
}

/// Recorded: a clock that falls by a tenth while 24 pairs are taken.
Samples drifting(double us) {
  Samples samples;
  for (int i = 0; i < 24; ++i) samples.push_back(us * (1 + 0.1 * i / 24) + 0.001 * (i % 3));
  return samples;
}

TEST(ComparePairs, DriftThatHitsBothCancels) {
  EXPECT_LT(estimate(drifting(10.1)).low_us, estimate(drifting(10)).high_us);  // the intervals tell nothing
  EXPECT_EQ(compare_pairs(drifting(10), drifting(10.1)), Comparison::faster);
  EXPECT_EQ(compare_pairs(drifting(10.1), drifting(10)), Comparison::slower);
  EXPECT_EQ(compare_pairs(drifting(10), drifting(10)), Comparison::tied);
}

TEST(ComparePairs, OneOutlierDoesNotDecide) {
  Samples fast(12, 10.0);
  fast[3] = 900;
  EXPECT_EQ(compare_pairs(fast, Samples(12, 10.5)), Comparison::faster);
}

TEST(ComparePairs, LessThanTheClockShowsIsATie) {
  EXPECT_EQ(compare_pairs(Samples(12, 10.0), Samples(12, 10.1)), Comparison::faster);
  EXPECT_EQ(compare_pairs(Samples(12, 10.0), Samples(12, 10.1), 0.5), Comparison::tied);
}

TEST(ComparePairs, TwoModesOfOneCandidateAreATieWithWhatLiesBetween) {
  Samples bimodal;
  for (int i = 0; i < 20; ++i) bimodal.push_back(i % 2 == 0 ? 2.7 : 3.4);
  EXPECT_EQ(compare_pairs(bimodal, Samples(20, 3.0)), Comparison::tied);
}

TEST(ComparePairs, FewPairsCannotBeSure) {
  EXPECT_EQ(compare_pairs({}, {}), Comparison::tied);
  EXPECT_EQ(compare_pairs(Samples(5, 1.0), Samples(5, 2.0)), Comparison::tied);
  EXPECT_EQ(compare_pairs(Samples(6, 1.0), Samples(9, 2.0)), Comparison::faster);
}

TEST(Spearman, KnowsOrderAndNothingElse) {
  EXPECT_DOUBLE_EQ(spearman(Samples{1, 2, 3, 4}, Samples{10, 200, 3000, 40000}), 1);
  EXPECT_DOUBLE_EQ(spearman(Samples{1, 2, 3, 4}, Samples{4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(spearman(Samples{106, 86, 100, 101, 99, 103, 97, 113, 112, 110},
                            Samples{7, 0, 27, 50, 28, 29, 20, 12, 6, 17}),
                   -29.0 / 165);  // the example of the encyclopaedias: IQ and hours of television
}

TEST(Spearman, EqualValuesShareTheirRank) {
  EXPECT_NEAR(spearman(Samples{1, 2, 2, 3}, Samples{1, 2, 3, 4}), 0.9487, 1e-4);
  EXPECT_EQ(spearman(Samples{5, 5, 5}, Samples{1, 2, 3}), 0);
  EXPECT_EQ(spearman(Samples{5}, Samples{1}), 0);
  EXPECT_EQ(spearman({}, {}), 0);
}

TEST(DifferByLess, IsOnlySaidOfEnoughPairsThatAllSaySo) {
  const std::vector<double> a{10, 11, 12, 13, 14, 15};
  const std::vector<double> b{10.1, 11.1, 12.1, 13.1, 14.1, 15.1};
  EXPECT_TRUE(differ_by_less(a, b, 0.2)) << "though both drift by far more";
  EXPECT_FALSE(differ_by_less(a, b, 0.05));
  EXPECT_FALSE(differ_by_less(std::span(a).first(5), b, 0.2));
}

}  // namespace
}  // namespace hone
