// Tests of the times that are expected of candidates after others have been measured.
#include "runtime/search/surrogate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/runtime/support/fake_device.h"

namespace hone {
namespace {

class SurrogateTest : public testing::Test {
 protected:
  ParameterSpace space_{
      {{"threads", {64, 128, 256, 512, 1024}}, {"unroll", {1, 2, 4, 8}}, {"finish", {0, 1}, {"a", "b"}}}};
  DeviceFacts facts_ = FakeDevice::facts_with_bandwidth();
  Surrogate surrogate_{space_, facts_};

  static Candidate candidate(std::int32_t threads, std::int32_t unroll, std::int32_t finish,
                             std::int64_t blocks = 132) {
    return {{threads, unroll, finish}, {.max_blocks = blocks}};
  }

  static Prediction device(double us) { return {.device_us = us}; }
};

TEST_F(SurrogateTest, WithoutObservationsThePredictionIsExpected) {
  const std::size_t point = surrogate_.add(candidate(64, 1, 0), device(7));
  EXPECT_NEAR(surrogate_.expected_us(point), 7, 1e-9);
}

TEST_F(SurrogateTest, WhatTheModelIsWrongByEverywhereIsPutRightEverywhere) {
  for (const std::int32_t threads : {64, 256, 1024})
    surrogate_.observe(surrogate_.add(candidate(threads, 1, 0), device(10)), 30);
  EXPECT_NEAR(surrogate_.expected_us(surrogate_.add(candidate(512, 8, 1, 1), device(20))), 60, 1e-6);
}

TEST_F(SurrogateTest, WhatWasMeasuredIsExpectedOfItAndMoreOrLessOfWhatIsLikeIt) {
  const std::size_t slow = surrogate_.add(candidate(64, 1, 0), device(10));
  const std::size_t fast = surrogate_.add(candidate(1024, 8, 1), device(10));
  surrogate_.observe(slow, 20);
  surrogate_.observe(fast, 10);
  EXPECT_NEAR(surrogate_.expected_us(slow), 20, 1.5);
  EXPECT_NEAR(surrogate_.expected_us(fast), 10, 1);
  const double near_slow = surrogate_.expected_us(surrogate_.add(candidate(64, 2, 0), device(10)));
  const double near_fast = surrogate_.expected_us(surrogate_.add(candidate(512, 8, 1), device(10)));
  EXPECT_GT(near_slow, 16);
  EXPECT_LT(near_slow, surrogate_.expected_us(slow));
  EXPECT_LT(near_fast, 12.5);
  const double other_grid = surrogate_.expected_us(surrogate_.add(candidate(64, 1, 0, 8 * 132), device(10)));
  EXPECT_GT(other_grid, 15);
  EXPECT_LT(other_grid, surrogate_.expected_us(slow));
}

TEST_F(SurrogateTest, TheOrderOfObservationsDoesNotMatter) {
  std::vector<std::pair<Candidate, double>> measured;
  for (const std::int32_t threads : {64, 128, 256, 512})
    for (const std::int32_t unroll : {1, 4})
      measured.push_back({candidate(threads, unroll, 0), threads / 16.0 + unroll});
  const auto expected = [&](const auto& in_order) {
    Surrogate surrogate(space_, facts_);
    const std::size_t asked = surrogate.add(candidate(1024, 2, 1), device(5));
    for (const auto& [each, us] : in_order) {
      surrogate.observe(surrogate.add(each, device(10)), us);
      surrogate.expected_us(asked);  // may not disturb what follows
    }
    return std::pair(surrogate.expected_us(asked), surrogate.expected_gain(asked, 10));
  };
  const auto [us, gain] = expected(measured);
  std::shuffle(measured.begin(), measured.end(), std::mt19937(1));
  const auto [shuffled_us, shuffled_gain] = expected(measured);
  EXPECT_NEAR(us, shuffled_us, 1e-9);
  EXPECT_NEAR(gain, shuffled_gain, 1e-9);
}

TEST_F(SurrogateTest, GainIsExpectedOfWhatIsFasterOrUnknown) {
  for (const std::int32_t threads : {64, 128, 256}) {
    surrogate_.observe(surrogate_.add(candidate(threads, 1, 0), device(10)), 10.0 + threads / 64.0);
  }
  const double leader_us = 11;
  const double faster = surrogate_.expected_gain(surrogate_.add(candidate(64, 1, 0, 264), device(8)), leader_us);
  EXPECT_NEAR(faster, std::log(11.0 / 9.2), 0.05);
  const double known = surrogate_.expected_gain(surrogate_.add(candidate(128, 1, 0), device(10)), leader_us);
  const double unknown = surrogate_.expected_gain(surrogate_.add(candidate(1024, 8, 1), device(10)), leader_us);
  EXPECT_LT(known, unknown);
  EXPECT_LT(unknown, faster);
  EXPECT_LT(surrogate_.expected_gain(surrogate_.add(candidate(1024, 8, 1), device(100)), leader_us), 1e-6);
}

TEST_F(SurrogateTest, ANeighbouringProblemSaysLessThanThisOne) {
  Surrogate nearby(space_, facts_);
  for (Surrogate* each : {&surrogate_, &nearby}) each->observe(each->add(candidate(1024, 8, 1), device(10)), 10);
  surrogate_.observe(surrogate_.add(candidate(64, 1, 0), device(10)), 20);
  nearby.observe_nearby(candidate(64, 1, 0), 0, 5, 10);
  const double here_us = surrogate_.expected_us(surrogate_.add(candidate(64, 1, 0), device(10)));
  const double nearby_us = nearby.expected_us(nearby.add(candidate(64, 1, 0), device(10)));
  EXPECT_GT(nearby_us, 14);
  EXPECT_LT(nearby_us, here_us);
}

TEST_F(SurrogateTest, WhatTheHostHidesIsNeitherLearnedFromNorExpected) {
  const auto in_stream = [&](std::int32_t threads, double device_us, double enqueue_us) {
    return surrogate_.add(candidate(threads, 1, 0), {.device_us = device_us, .enqueue_us = enqueue_us});
  };
  surrogate_.observe(in_stream(64, 4, 2.5), 6);    // half as long again
  surrogate_.observe(in_stream(128, 1, 2.5), 2.5);  // and something that the host hides
  const std::size_t two_launches = in_stream(256, 3.6, 5);
  EXPECT_NEAR(surrogate_.expected_us(two_launches), 5.4, 1e-6) << "not half as long again as the host takes";
  EXPECT_EQ(surrogate_.expected_us(in_stream(512, 2, 5)), 5);
  EXPECT_EQ(surrogate_.expected_gain(two_launches, 5), 0) << "the host takes as long";
  EXPECT_GT(surrogate_.expected_gain(two_launches, 6), 0.05);
  const double at_most = std::log(6.0 / 5);
  EXPECT_LE(surrogate_.expected_gain(in_stream(1024, 0.1, 5), 6), at_most + 1e-9);
}

TEST_F(SurrogateTest, AHostThatIsKnownHidesWhatItTakesAndNoMore) {
  const double by_the_model = model_constants(facts_).enqueue_us;
  Surrogate quick(space_, facts_, 0.5 * by_the_model);
  const auto in_stream = [&](std::int32_t threads, double device_us, int launches) {
    return quick.add(candidate(threads, 1, 0), {.device_us = device_us, .enqueue_us = launches * by_the_model});
  };
  quick.observe(in_stream(64, 0.6 * by_the_model, 1), 0.9 * by_the_model);
  EXPECT_NEAR(quick.expected_us(in_stream(128, 0.5 * by_the_model, 1)), 0.75 * by_the_model, 1e-6);
  EXPECT_NEAR(quick.expected_us(in_stream(128, 0.1 * by_the_model, 2)), by_the_model, 1e-6);
  EXPECT_GT(quick.expected_gain(in_stream(512, 0.4 * by_the_model, 1), 0.9 * by_the_model), 0.1);
}

TEST_F(SurrogateTest, EqualCandidatesAndTimesThatAreNotKnownAreHarmless) {
  for (int i = 0; i < 20; ++i) surrogate_.observe(surrogate_.add(candidate(64, 1, 0), device(10)), 12);
  surrogate_.observe(surrogate_.add(candidate(64, 2, 0), device(10)), 0);
  surrogate_.observe_nearby(candidate(64, 2, 0), 0, 0, 10);
  const std::size_t point = surrogate_.add(candidate(64, 1, 0), device(10));
  EXPECT_NEAR(surrogate_.expected_us(point), 12, 1e-6);
  EXPECT_LT(surrogate_.expected_gain(point, 12), 0.01);
}

}  // namespace
}  // namespace hone
