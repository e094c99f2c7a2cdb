#include "runtime/measure/elimination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

namespace hone {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

/// Racers whose times a function invents: us(racer, how many samples were taken before, of all).
class EliminationTest : public testing::Test {
 protected:
  using Times = std::function<double(std::size_t racer, int taken)>;

  std::vector<std::size_t> run(std::size_t count, const Times& us, double resolution_us = 0) {
    racers_.assign(count, {});
    taken_ = 0;
    std::vector<Racer*> pointers;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t sample = 0; sample < rules_.first_samples; ++sample) take(i, us);
      racers_[i].resolution_us = resolution_us;
      pointers.push_back(&racers_[i]);
    }
    return eliminate(
        pointers, rules_,
        [&](std::size_t racer) {
          if (racer == failing_ && taken_ >= failing_from_) return false;
          take(racer, us);
          return true;
        },
        [&] { return taken_ < most_; });
  }

  void take(std::size_t racer, const Times& us) { racers_[racer].samples_us.push_back(us(racer, taken_++)); }
  std::size_t samples(std::size_t racer) const { return racers_[racer].samples_us.size(); }

  EliminationRules rules_;
  std::vector<Racer> racers_;
  int taken_ = 0;
  int most_ = 1 << 30;
  std::size_t failing_ = 1000;
  int failing_from_ = 0;
};

TEST_F(EliminationTest, ClearLosersDropOutAtOnce) {
  EXPECT_THAT(run(5, [](std::size_t racer, int) { return 10.0 + 5 * static_cast<double>(racer); }), ElementsAre(0));
  for (std::size_t racer = 0; racer < 5; ++racer) EXPECT_EQ(samples(racer), 3u);
}

TEST_F(EliminationTest, TheRestGetTwiceAsManySamplesEveryRound) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.2);
  run(3, [&](std::size_t racer, int) { return (racer == 2 ? 14 : 10) + noise(random); });
  EXPECT_EQ(samples(2), 3u);
  EXPECT_EQ(samples(0), rules_.most_samples);
  EXPECT_EQ(samples(1), rules_.most_samples);
}

TEST_F(EliminationTest, WhatCannotBeToldApartIsATie) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.2);
  EXPECT_THAT(run(4, [&](std::size_t racer, int) { return (racer == 1 ? 12 : 10) + noise(random); }),
              UnorderedElementsAre(0, 2, 3));
}

TEST_F(EliminationTest, AHundredthIsFoundUnderADriftOfATenth) {
  // All slow down together and recover, over and over.
  const Times us = [](std::size_t racer, int taken) {
    return (racer == 3 ? 9.9 : 10.0) * (1.05 + 0.05 * std::sin(taken / 40.0 * std::numbers::pi));
  };
  EXPECT_THAT(run(6, us), ElementsAre(3));
}

TEST_F(EliminationTest, TheLastTwoAreComparedByPairs) {
  // Each pair meets another clock; the intervals overlap almost wholly.
  const Times us = [](std::size_t racer, int taken) {
    return (racer == 0 ? 10.08 : 10) * (1 + (taken / 2 * 37 % 20) / 100.0);
  };
  EXPECT_THAT(run(2, us), ElementsAre(1));
}

TEST_F(EliminationTest, ALargeFieldIsHalvedThoughNothingTellsItApart) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.2);
  const std::vector<std::size_t> tied = run(64, [&](std::size_t, int) { return 10 + noise(random); });
  EXPECT_GE(tied.size(), 2u);
  EXPECT_LE(tied.size(), rules_.halve_above);
  EXPECT_LT(taken_, 64 * 3 + 32 * 3 + 16 * 6 + 8 * 36 + 1);
}

TEST_F(EliminationTest, OfAFieldThatAlwaysTakesTheSameNobodyIsMeasuredAgain) {
  EXPECT_EQ(run(20, [](std::size_t racer, int) { return racer < 15 ? 2.66 : 3.0; }).size(), 15u);
  for (std::size_t racer = 0; racer < 20; ++racer) EXPECT_EQ(samples(racer), 3u);
}

TEST_F(EliminationTest, WhatDiffersByLessThanTheResolutionForSureIsNotMeasuredOn) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.02);
  rules_.indifference = 0;
  EXPECT_EQ(run(2, [&](std::size_t, int) { return 100 + noise(random); }, 0.5).size(), 2u);
  EXPECT_LE(samples(0), 12u);
}

TEST_F(EliminationTest, WhatIsNotWorthTellingIsNotMeasuredOn) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.02);
  const Times us = [&](std::size_t, int) { return 100 + noise(random); };
  run(2, us);
  EXPECT_LE(samples(0), 12u);
  rules_.indifference = 0;
  run(2, us);
  EXPECT_LE(samples(0), 12u) << "they differ by less than processes do";
  rules_.indifferent_us = 0;
  run(2, us);
  EXPECT_EQ(samples(0), rules_.most_samples);
}

TEST_F(EliminationTest, WhoIsBehindByLessThanProcessesDifferIsATie) {
  const Times us = [](std::size_t racer, int) { return 3.4 + 0.02 * static_cast<double>(racer); };
  EXPECT_THAT(run(5, us), ElementsAre(0, 1, 2));
  rules_.indifferent_us = 0.01;
  EXPECT_THAT(run(5, us), ElementsAre(0));
}

TEST_F(EliminationTest, OneOutlierCostsNobodyTheRace) {
  EXPECT_THAT(run(2,
                  [&](std::size_t racer, int taken) {
                    if (taken == 1) return 5000.0;  // among the first samples of the faster one
                    return racer == 0 ? 10.0 : 10.3;
                  }),
              ElementsAre(0));
}

TEST_F(EliminationTest, DifferencesBelowTheResolutionAreATie) {
  const Times us = [](std::size_t racer, int) { return racer == 0 ? 10.0 : 10.1; };
  EXPECT_THAT(run(2, us), ElementsAre(0));
  EXPECT_THAT(run(2, us, 0.5), ElementsAre(0, 1));
}

TEST_F(EliminationTest, ARacerThatFailsIsOut) {
  failing_ = 0;
  EXPECT_THAT(run(2, [](std::size_t racer, int taken) { return 10.0 + 0.01 * static_cast<double>(racer) + taken % 2; }),
              ElementsAre(1));
}

TEST_F(EliminationTest, ItEndsWhenToldTo) {
  most_ = 12;
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.2);
  EXPECT_FALSE(run(4, [&](std::size_t, int) { return 10 + noise(random); }).empty());
  EXPECT_EQ(taken_, 12);
}

TEST_F(EliminationTest, NobodyAndOneNeedNoSamples) {
  EXPECT_TRUE(run(0, [](std::size_t, int) { return 1.0; }).empty());
  EXPECT_THAT(run(1, [](std::size_t, int) { return 1.0; }), ElementsAre(0));
  EXPECT_EQ(samples(0), 3u);
}

TEST_F(EliminationTest, TheSameSeedGivesTheSameOrder) {
  const auto order_of = [&](std::uint32_t seed) {
    rules_.seed = seed;
    std::vector<std::size_t> order;
    run(4, [&](std::size_t racer, int taken) {
      if (taken >= 12) order.push_back(racer);
      return 10.0 + taken % 3;
    });
    return order;
  };
  EXPECT_EQ(order_of(1), order_of(1));
  EXPECT_NE(order_of(1), order_of(2));
}

}  // namespace
}  // namespace hone
