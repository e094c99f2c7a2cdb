#include "tuner/winners/limits.h"

#include <gmock/gmock.h>

#include "tests/tuner/report/report_fixture.h"
#include "tuner/winners/stored_facts.h"

namespace hone::tuner {
namespace {

WinnerLimit limit(const cache::Publication& publication, double us, std::int64_t in_flight = 1 << 16) {
  cache::StoredWinner winner = stored_winner(publication);
  winner.winner.median_us = us;
  return limit_of(winner, in_flight, device_ceilings(winner.key.device, LaunchContext::stream, {winner}));
}

TEST(StoredFacts, AreTheInverseOfTheIdentity) {
  DeviceFacts facts;
  facts.kind = "cuda";
  facts.name = "GPU = A; B";
  facts.architecture = "sm_90";
  facts.compute_capability = 90;
  facts.sm_count = 132;
  facts.smem_bytes_per_sm = 233472;
  facts.l2_bytes = std::int64_t{50} << 20;
  facts.memory_clock_khz = 2619000;
  facts.memory_bus_bits = 5120;
  const DeviceFacts read = stored_facts({"cuda", facts.name, "sm_90", tuning_identity(facts), 132, 2048, 3352.32});
  EXPECT_EQ(tuning_identity(read), tuning_identity(facts));
  EXPECT_TRUE(read.has_dependent_launch);
}

TEST(StoredFacts, ADamagedIdentityLeavesTheColumns) {
  const DeviceFacts read = stored_facts({"cuda", "GPU", "sm_90", "sm_count=12x;l2_bytes=;=;;memory", 132, 2048, 0});
  EXPECT_EQ(read.sm_count, 132);
  EXPECT_EQ(read.l2_bytes, 0);
  EXPECT_EQ(stored_facts({"", "", "", "sm_count=-5;", 0, 0, 0}).sm_count, 1);
}

TEST(Limits, ACallAsShortAsALaunchIsLimitedByIt) { EXPECT_EQ(limit(tuned_sum(10), 2.7).limit, Limit::launch); }

TEST(Limits, ACallAtTheBandwidthIsLimitedByIt) {
  const WinnerLimit found = limit(tuned_sum(28), 350);
  EXPECT_EQ(found.limit, Limit::memory);
  EXPECT_NEAR(found.memory_us, 344, 1);
  EXPECT_EQ(found.blocks, 132);
}

TEST(Limits, TooFewBytesInFlightAreLatency) {
  EXPECT_EQ(limit(tuned_sum(28), 700, 4096).limit, Limit::latency);
  EXPECT_EQ(limit(tuned_sum(28), 700, 1 << 16).limit, Limit::arithmetic);
}

TEST(Limits, AFewLatenciesBeyondTheRooflineAreLatency) {
  EXPECT_EQ(limit(tuned_sum(22), 8.5).limit, Limit::latency);
  EXPECT_EQ(limit(tuned_sum(22), 20).limit, Limit::arithmetic);
}

TEST(Limits, IdleSmsAreLatency) {
  cache::Publication few = tuned_sum(20);
  few.winner.candidate.max_blocks = 8;
  EXPECT_EQ(limit(few, 20).limit, Limit::latency);
}

TEST(Limits, WhatWasMeasuredMovesTheCeilings) {
  cache::Publication fast = tuned_sum(28);
  fast.winner.median_us = 320;  // beyond the model's share of 3352 GB/s
  const cache::StoredWinner winner = stored_winner(fast);
  const DeviceCeilings ceilings = device_ceilings(winner.key.device, LaunchContext::stream, {winner});
  EXPECT_TRUE(ceilings.is_read_measured);
  EXPECT_NEAR(ceilings.read_gbps, 3355, 1);
  EXPECT_EQ(device_ceilings(winner.key.device, LaunchContext::stream, {}).is_read_measured, false);
}

TEST(Limits, TheCeilingWithoutAWinnerIsThatOfTheOthers) {
  std::vector<cache::StoredWinner> winners;
  for (const double us : {330.0, 320.0, 325.0}) {
    winners.push_back(stored_winner(tuned_sum(28)));
    winners.back().id = static_cast<std::int64_t>(winners.size());
    winners.back().winner.median_us = us;
  }
  const auto gbps = [&](std::int64_t without) {
    return device_ceilings(winners[0].key.device, LaunchContext::stream, winners).without(without).read_gbps;
  };
  EXPECT_NEAR(gbps(1), 3355, 1);
  EXPECT_NEAR(gbps(2), 3303, 1);
  EXPECT_NEAR(gbps(3), 3355, 1);
  winners.erase(winners.begin(), winners.begin() + 1);
  winners.erase(winners.begin() + 1);
  EXPECT_NEAR(gbps(2), 3118, 1) << "the model's";
}

TEST(Limits, ACallIsNoFloorOfItsOwn) {
  const cache::StoredWinner winner = [] {
    cache::StoredWinner stored = stored_winner(tuned_sum(10));
    stored.id = 7;
    stored.winner.median_us = 1.5;
    return stored;
  }();
  const DeviceCeilings ceilings = device_ceilings(winner.key.device, LaunchContext::stream, {winner});
  EXPECT_NEAR(ceilings.floor_us, 1.5, 1e-9);
  EXPECT_NEAR(ceilings.without(8).floor_us, 1.5, 1e-9);
  EXPECT_GT(ceilings.without(7).floor_us, 2.5);
}

TEST(Limits, OfAnUnknownFamilyTheGridIsNotKnown) {
  cache::Publication own = tuned_sum(28);
  own.key.problem.family = "own";
  EXPECT_EQ(limit(own, 350).blocks, 0);
  EXPECT_EQ(limit(own, 350).limit, Limit::memory);
}

}  // namespace
}  // namespace hone::tuner
