// Which policies a search takes first, and which next.
#include "runtime/choose/search_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

class SearchOrderTest : public testing::Test {
 protected:
  SearchOrderTest() { problem_.launch_context = LaunchContext::graph; }

  const Policy& policy(const SearchOrder& order, std::size_t place) const { return order.ranking()[place].policy; }

  DeviceFacts facts_ = FakeDevice::facts_with_bandwidth();
  TotalFamily family_{{.space = ParameterSpace{{{"threads", {32, 64, 128, 256, 512, 1024}},
                                                {"work", {1, 2, 4, 8, 16, 32, 64, 128}},
                                                {"finish", {0, 1}, {"alone", "joined"}}}}}};
  Problem problem_ = family_.problem(50000);
  TuningOptions options_;
};

TEST_F(SearchOrderTest, TheModelsChoiceThenNeighboursWinnersThenEveryValueOnce) {
  options_.start_from = {{{1024, 128, 1}, {8}}};
  SearchOrder order(facts_, problem_, options_);
  const SearchOrder::Wave wave = order.next(16, kUnknown);
  ASSERT_EQ(wave.size(), 16u);
  EXPECT_EQ(wave[0], 0u);
  EXPECT_EQ(policy(order, wave[1]), options_.start_from[0].policy);
  std::set<std::int32_t> threads, work, finish;
  for (const std::size_t place : wave) {
    threads.insert(policy(order, place)[0]);
    work.insert(policy(order, place)[1]);
    finish.insert(policy(order, place)[2]);
  }
  EXPECT_EQ(threads.size(), 6u);
  EXPECT_EQ(work.size(), 8u);
  EXPECT_EQ(finish.size(), 2u);
  EXPECT_TRUE(order.comes_first(wave[1]));
}

TEST_F(SearchOrderTest, NothingIsTakenTwiceAndNothingIsLeftOut) {
  SearchOrder order(facts_, problem_, options_);
  std::set<std::size_t> taken;
  for (SearchOrder::Wave wave = order.next(7, kUnknown); !wave.empty(); wave = order.next(7, 20)) {
    EXPECT_LE(wave.size(), 7u);
    for (const std::size_t place : wave) EXPECT_TRUE(taken.insert(place).second);
    EXPECT_EQ(order.left().size() + taken.size(), order.ranking().size());
  }
  EXPECT_EQ(taken.size(), order.ranking().size());
  EXPECT_EQ(order.best_gain(order.left(), 20), 0);
}

TEST_F(SearchOrderTest, WhatIsGivenBackIsThereAgain) {
  SearchOrder order(facts_, problem_, options_);
  for (const std::size_t count : {4u, 16u, 16u}) {  // of those that come first, of both, and of the others
    const SearchOrder::Wave left = order.left();
    const SearchOrder::Wave wave = order.next(count, 20);
    order.give_back(wave);
    EXPECT_EQ(order.left(), left);
    EXPECT_EQ(order.next(count, 20), wave);
  }
}

TEST_F(SearchOrderTest, WhatANeighbouringProblemFoundFastComesNext) {
  for (const std::int32_t threads : {32, 128, 512})
    for (const std::int32_t work : {1, 4, 16, 64})
      for (const std::int32_t finish : {0, 1})
        options_.nearby.push_back({.candidate = {{threads, work, finish}, {8}},
                                   .predicted_us = 10,
                                   .median_us = threads == 512 && work == 64 ? 1.0 : 30.0});
  SearchOrder order(facts_, problem_, options_);
  const SearchOrder::Wave wave = order.next(5, kUnknown);
  EXPECT_EQ(wave[0], 0u) << "the model's choice is the default that is to be beaten";
  const auto is_alike = [&](std::size_t place) {
    return policy(order, place)[0] >= 256 && policy(order, place)[1] >= 32;
  };
  EXPECT_GE(std::count_if(wave.begin() + 1, wave.end(), is_alike), 3);
}

TEST_F(SearchOrderTest, OnlyWhatIsListedIsRankedAndRejected) {
  options_.only = {{{64, 1, 0}, {8}}, {{128, 2, 1}, {8}}};
  SearchOrder order(facts_, problem_, options_);
  EXPECT_EQ(order.ranking().size() + order.rejected().size(), 2u);
}

TEST_F(SearchOrderTest, LittleIsExpectedToTellOfAnotherNameOrGridAndMuchOfAnotherNumber) {
  const SearchOrder order(facts_, problem_, options_);
  const Policy leader{128, 4, 1};
  constexpr double kLittleBehind = 1.04, kBehind = 1.2, kFarBehind = 1.4;
  EXPECT_TRUE(order.is_near_relative({256, 4, 1}, leader, kLittleBehind, 1));
  EXPECT_FALSE(order.is_near_relative({256, 4, 1}, leader, kBehind, 1));
  EXPECT_TRUE(order.is_near_relative({128, 4, 0}, leader, kBehind, 1)) << "another name";
  EXPECT_TRUE(order.is_near_relative(leader, leader, kBehind, 1)) << "another grid";
  EXPECT_FALSE(order.is_near_relative({128, 4, 0}, leader, kFarBehind, 1));
  EXPECT_FALSE(order.is_near_relative({256, 4, 0}, leader, kLittleBehind, 1)) << "two parameters differ";
}

class LeadersTest : public testing::Test {
 protected:
  /// Fastest first.
  std::vector<Candidate> leaders(const std::vector<Trial>& trials) const {
    std::vector<const Trial*> measured;
    for (const Trial& trial : trials) measured.push_back(&trial);
    return leaders_of(measured, space_);
  }

  ParameterSpace space_{{ordinal("threads", {64, 128}), categorical("finish", {"alone", "joined"})}};
};

TEST_F(LeadersTest, AreTheFastestAndTheFastestOfEachOtherName) {
  const std::vector<Candidate> found = leaders({{.candidate = {{64, 0}, {8}}, .median_us = 10},
                                                {.candidate = {{128, 0}, {8}}, .median_us = 10.1},
                                                {.candidate = {{128, 1}, {8}}, .median_us = 10.7},
                                                {.candidate = {{64, 1}, {8}}, .median_us = 10.75}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].policy, (Policy{64, 0}));
  EXPECT_EQ(found[1].policy, (Policy{128, 1}));
}

TEST_F(LeadersTest, WhatIsFarBehindTheFastestIsNone) {
  EXPECT_EQ(leaders({{.candidate = {{64, 0}, {8}}, .median_us = 10},
                     {.candidate = {{64, 1}, {8}}, .median_us = 10.81}})
                .size(),
            1u);
}

}  // namespace
}  // namespace hone
