#include "runtime/search/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include <hone/sdk/occupancy.h>

#include "tests/runtime/support/invented_devices.h"
#include "tests/runtime/support/total_family.h"

namespace hone {
namespace {

constexpr int kResident = 6;

constexpr std::int64_t kTileBytes = 65536;

/// Work of `tiles` tiles on blocks that have 4 KiB in flight each.
struct Work {
  WorkShape shape;
  std::int64_t bytes;

  explicit Work(std::int64_t tiles) : bytes(tiles * kTileBytes) {
    shape.block_threads = 256;
    shape.tiles = tiles;
    shape.bytes_in_flight_per_block = 4096;
  }
  Prediction on(const DeviceFacts& facts, std::int64_t max_blocks, int resident = kResident) const {
    return predict(facts, shape, bytes, resident, {.max_blocks = max_blocks});
  }
};

TEST(Model, OneBlockTooManyTakesAsLongAsOneBlockAlone) {
  const DeviceFacts facts = gpu_of_82_sms();  // 492 blocks at once
  const double two_waves = Work(984).on(facts, 984).us();
  EXPECT_NEAR(Work(985).on(facts, 985).us() - two_waves, Work(1).on(facts, 1).us(), 0.2 * Work(1).on(facts, 1).us());
  EXPECT_GT(Work(985).on(facts, 985).us(), 1.1 * two_waves);
}

TEST(Model, AWaveThatIsNotFullTakesAsLongAsOneThatIsWhileNothingIsSaturated) {
  const DeviceFacts facts = gpu_of_82_sms();
  Work few(492 + 40);
  Work more(492 + 120);
  few.shape.bytes_in_flight_per_block = more.shape.bytes_in_flight_per_block = 64;
  EXPECT_EQ(few.on(facts, 532).blocks, 532);
  EXPECT_NEAR(few.on(facts, 532).us(), more.on(facts, 612).us(), 0.02 * more.on(facts, 612).us());
}

TEST(Model, AWarpIssuesAFourthOfWhatItsSmDoes) {
  Work all(1);
  all.shape.instructions_per_byte = 1;
  Work one_warp = all, four_warps = all;
  one_warp.shape.loading_threads = 32;
  four_warps.shape.loading_threads = 128;
  EXPECT_EQ(four_warps.on(h100_facts(), 1).us(), all.on(h100_facts(), 1).us());
  EXPECT_GT(one_warp.on(h100_facts(), 1).us(), all.on(h100_facts(), 1).us());
}

TEST(Model, TheGridIsCappedByTheWork) {
  EXPECT_EQ(Work(5).on(h100_facts(), 528).blocks, 5);
  EXPECT_EQ(Work(528).on(h100_facts(), 528).blocks, 528);
  EXPECT_EQ(Work(100000).on(h100_facts(), 528).blocks, 528);
  EXPECT_EQ(Work(1).on(h100_facts(), 1).blocks, 1);
}

TEST(Model, BytesInFlightAreThoseOfTheBusiestSm) {
  EXPECT_EQ(Work(100000).on(h100_facts(), 132).bytes_in_flight_per_sm, 4096);
  EXPECT_EQ(Work(100000).on(h100_facts(), 528).bytes_in_flight_per_sm, 4 * 4096);
  EXPECT_EQ(Work(100000).on(h100_facts(), 4 * 792).bytes_in_flight_per_sm, 6 * 4096);  // no more than are resident
  EXPECT_EQ(Work(5).on(h100_facts(), 528).bytes_in_flight_per_sm, 4096);
}

TEST(Model, WhatIsInFlightLastIsCombinedWhileNothingIsLoaded) {
  Work plain(132 * 1000), busy(132 * 1000);
  busy.shape.instructions_per_byte = 1;
  const auto drain_us = [&](std::int64_t blocks) {
    return busy.on(h100_facts(), blocks).us() - plain.on(h100_facts(), blocks).us();
  };
  EXPECT_GT(drain_us(132), 4096 / 217e3);
  EXPECT_GT(drain_us(6 * 132), 6 * 4096 / 217e3) << "the blocks of an SM share what it issues";
  EXPECT_EQ(busy.on(two_core_host_facts(), 2, 1).us(), plain.on(two_core_host_facts(), 2, 1).us());
}

TEST(Model, AnSmTakesNoMoreThanItHasInstructionsFor) {
  Work work(132 * 1000);
  work.shape.instructions_per_byte = 100;  // 2.17 GB/s of an SM
  const double least_us = static_cast<double>(work.bytes) * 100 / (132 * 217e3);
  EXPECT_GT(work.on(h100_facts(), 6 * 132).us(), least_us);
  EXPECT_LT(work.on(h100_facts(), 6 * 132).us(), 1.05 * least_us);
}

TEST(Model, MoreBytesInFlightAreNeverSlowerInOneWave) {
  double earlier = 1e30;
  for (std::int64_t per_sm : {1, 2, 3, 6}) {
    const double us = Work(132 * 6 * 100).on(h100_facts(), 132 * per_sm).us();
    EXPECT_LE(us, earlier) << per_sm;
    earlier = us;
  }
}

TEST(Model, ThreadsThatRunInTurnWantSharesThatFitTheCache) {
  const Work work(1024);  // 64 MiB
  const DeviceFacts facts = two_core_host_facts();
  EXPECT_LT(work.on(facts, 31, 1).us(), 0.7 * work.on(facts, 2, 1).us());
  EXPECT_GT(work.on(facts, 1023, 1).us(), work.on(facts, 31, 1).us());  // starting threads costs as well
}

TEST(Model, MoreBytesAreNeverFaster) {
  for (const DeviceFacts& facts : {h100_facts(), gpu_of_82_sms(), two_core_host_facts()}) {
    double earlier = 0;
    for (std::int64_t tiles = 1; tiles < 3000000; tiles = tiles * 5 / 4 + 1) {
      const double us = Work(tiles).on(facts, facts.sm_count * 4).us();
      EXPECT_GE(us, earlier * 0.999) << tiles;
      earlier = us;
    }
  }
}

TEST(Model, NothingExceedsTheBandwidth) {
  const DeviceFacts facts = h100_facts();
  for (int resident : {1, 2, 8, 32}) {
    const Work work(1 << 20);
    const double gbps = static_cast<double>(work.bytes) / work.on(facts, 132 * resident, resident).us() * 1e-3;
    EXPECT_LE(gbps, peak_bandwidth_gbps(facts));
  }
}

TEST(Model, FurtherLaunchesAndJoinsCost) {
  Work work(10000);
  const double plain = work.on(h100_facts(), 528).us();
  work.shape.uses_last_block_ticket = true;
  const double joined = work.on(h100_facts(), 528).us();
  work.shape.uses_last_block_ticket = false;
  work.shape.launches = 2;
  EXPECT_GT(joined, plain);
  EXPECT_GT(work.on(h100_facts(), 528).us(), joined);
}

TEST(Model, WhatBlocksSpendIdleCountsOnceAWave) {
  Work work(10000);
  const auto us = [&](std::int64_t blocks) { return work.on(h100_facts(), blocks, 1).us(); };
  const double one_wave = us(132), two_waves = us(264);
  work.shape.pipeline_fill_latencies = 4;
  const double idle_us = 4 * model_constants(h100_facts()).memory_latency_us;
  EXPECT_NEAR(us(132), one_wave + idle_us, 1e-9);
  EXPECT_NEAR(us(264), two_waves + 2 * idle_us, 1e-9);
}

TEST(Model, NoLoadWaitsForTheBlocksOfAClusterBehindItsLastTile) {
  const auto working_us = [](std::int64_t tiles, double round_latencies) {
    Work work(tiles);
    work.shape.cluster_blocks = 4;
    work.shape.bytes_in_flight_per_block = kTileBytes;
    const double in_one_round = Work(0).on(h100_facts(), 4, 1).us();
    work.shape.round_latencies = round_latencies;
    return work.on(h100_facts(), 4, 1).us() - in_one_round;
  };
  EXPECT_NEAR(working_us(4, 5), working_us(4, 1), 1e-9);
  EXPECT_GT(working_us(400, 5), 2 * working_us(400, 1));
}

TEST(Model, GridsThatLoadAllTilesInOneRoundMayHaveOtherLatencies) {
  const auto us = [](std::int64_t tiles, double lone) {
    Work work(tiles);
    work.shape.round_latencies = 5;
    work.shape.lone_round_latencies = lone;
    return work.on(h100_facts(), 132, 1).us();
  };
  EXPECT_LT(us(132, 2), us(132, 0));
  EXPECT_DOUBLE_EQ(us(132, 5), us(132, 0));
  EXPECT_DOUBLE_EQ(us(264, 2), us(264, 0));
}

TEST(Model, WhatIsReadAgainComesFromL2WhileItHoldsIt) {
  const DeviceFacts facts = h100_facts();
  Work work(100000);
  work.shape.bytes_in_flight_per_block = kTileBytes / 2;
  work.shape.traffic = 1.5;
  work.shape.reread_traffic = 0.5;
  const auto us = [&](std::int64_t distance_bytes, std::int64_t distance_tiles) {
    work.shape.reread_distance_bytes = distance_bytes;
    work.shape.reread_distance_tiles = distance_tiles;
    return work.on(facts, 792).us();
  };
  const double from_l2 = us(1 << 20, 0), from_memory = us(facts.l2_bytes, 0);
  EXPECT_LT(us(facts.l2_bytes / 2, 0), from_memory);
  EXPECT_GT(us(facts.l2_bytes / 2, 0), from_l2);
  EXPECT_GT(us(1 << 20, 1), 1.05 * from_l2) << "each block reads a tile in between";
  EXPECT_NEAR(us(1 << 20, 2), from_memory, 1e-9);
  work.shape.reread_traffic = 0;
  EXPECT_NEAR(us(1 << 20, 0), from_memory, 1e-9);
  work.shape.traffic = 1;
  EXPECT_LT(us(1 << 20, 0), from_l2) << "L2 takes its time, too";
}

TEST(Model, WhatBlocksDoNotHoldOfARowIsReadAgain) {
  const DeviceFacts facts = h100_facts();
  Work work(100000);
  work.shape.traffic = 1.5;
  work.shape.reread_traffic = 0.5;
  work.shape.bytes_in_flight_per_block = 48 << 10;
  work.shape.held_bytes_per_block = 216 << 10;
  const std::int64_t capacity = facts.sm_count * work.shape.held_bytes_per_block;
  const auto us = [&](double share, std::int64_t rows) {
    work.shape.reread_distance_bytes = static_cast<std::int64_t>(share * static_cast<double>(capacity));
    work.shape.held_rows = rows;
    return work.on(facts, facts.sm_count, 1).us();
  };
  const double held = us(0.2, 0);
  EXPECT_EQ(us(1, 0), held);
  EXPECT_GT(us(1.1, 0), held);
  EXPECT_GT(us(4, 0), us(1.1, 0));
  EXPECT_EQ(us(0.2, 100), held) << "as many bytes of the next rows are held meanwhile";
  EXPECT_GT(us(0.6, 100), held);
  EXPECT_GT(us(1, 100), us(0.6, 100));
}

TEST(Model, ACounterThatAllBlocksIncrementSetsThePaceOfTheirTiles) {
  const DeviceFacts facts = h100_facts();
  const double latency_us = model_constants(facts).memory_latency_us;
  Work work(100000);
  const double without = work.on(facts, 528).us();
  work.shape.latencies_between_tiles = 0.02;
  EXPECT_NEAR(work.on(facts, 528).us(), without, 0.1 * without);
  work.shape.latencies_between_tiles = 1;
  EXPECT_NEAR(work.on(facts, 528).us(), 100000 * latency_us, 0.01 * 100000 * latency_us);
}

/// What clusters of 16 blocks take that have one tile each.
double us_of_clusters(std::int64_t clusters, int resident) {
  constexpr int kBlocks = 16;
  Work work(clusters * kBlocks);
  work.shape.cluster_blocks = kBlocks;
  work.shape.bytes_in_flight_per_block = kTileBytes;
  return work.on(h100_facts(), clusters * kBlocks, resident).us();
}

TEST(Model, AClusterThatSharesItsSmsWithAnotherSharesTheirMemory) {
  const double seventh_us = us_of_clusters(7, 2) - us_of_clusters(6, 2);
  EXPECT_GT(us_of_clusters(8, 2) - us_of_clusters(7, 2), 2 * seventh_us) << "seven have SMs to themselves";
  EXPECT_NEAR(us_of_clusters(8, 2), us_of_clusters(8, 1), 0.1 * us_of_clusters(8, 1)) << "as if it came behind them";
  EXPECT_LT(us_of_clusters(14, 2), 2 * us_of_clusters(7, 2));
}

TEST(Model, FewClustersThatLoadAndStoreInTurnDoNotReachTheRateOfMemory) {
  const auto us = [](std::int64_t clusters, double sm_gbps) {
    Work work(clusters * 16);
    work.shape.cluster_blocks = 16;
    work.shape.bytes_in_flight_per_block = 4 * kTileBytes;
    work.shape.cluster_sm_gbps = sm_gbps;
    return work.on(h100_facts(), clusters * 16, 1).us() - Work(0).on(h100_facts(), 16, 1).us();
  };
  EXPECT_GT(us(2, 50), 1.4 * us(2, 0));
  EXPECT_GT(us(4, 50), 1.2 * us(4, 0));
  EXPECT_LT(us(7, 50), 1.2 * us(7, 0));
}

TEST(Model, SomeSmsAreInNoCluster) {
  const auto us = [](std::int64_t blocks) {
    Work work(blocks);
    work.shape.cluster_blocks = 4;
    return work.on(h100_facts(), blocks, 1).us();
  };
  EXPECT_GT(us(128), 1.5 * us(124)) << "31 clusters are resident";
}

TEST(Model, BlocksThatSmsCannotShareAlikeCost) {
  Work work(100'000);
  const auto us = [&](std::int64_t blocks, int resident) { return work.on(h100_facts(), blocks, resident).us(); };
  for (const bool overlaps : {false, true}) {
    work.shape.dependent_launch = overlaps;
    EXPECT_EQ(us(264, 3) > 1.05 * us(264, 4), overlaps);
    EXPECT_LT(us(396, 3), us(132, 3)) << "as many as are resident";
    EXPECT_NEAR(us(132, 3), us(132, 4), 1e-9) << "one an SM";
  }
}

TEST(Model, NoWorkStillTakesALaunch) {
  const WorkShape empty{.block_threads = 128, .tiles = 1, .bytes_in_flight_per_block = 2048};
  for (const DeviceFacts& facts : {h100_facts(), two_core_host_facts()}) {
    const Prediction prediction = predict(facts, empty, 4, 1, {.max_blocks = 1});
    EXPECT_GE(prediction.us(), model_constants(facts).launch_us);
    EXPECT_LT(prediction.us(), 1000);
  }
}

TEST(Model, BytesInFlightFollowLittlesLaw) {
  // 93 % of 3352 GB/s for 0.55 µs on 132 SMs: 12.7 KiB.
  const std::int64_t needed = bytes_in_flight_needed(h100_facts());
  EXPECT_GT(needed, 12 << 10);
  EXPECT_LT(needed, 14 << 10);
  EXPECT_EQ(bytes_in_flight_needed(two_core_host_facts()), 0);
}

TEST(Model, AnUnknownBandwidthIsReplacedByAGuess) {
  DeviceFacts facts = h100_facts();
  facts.memory_clock_khz = 0;
  EXPECT_GT(model_constants(facts).bandwidth_gbps, 0);
  EXPECT_GT(model_constants(two_core_host_facts()).bandwidth_gbps, 0);
}

TEST(Model, TheWorkOfTwoToThe62BytesDoesNotOverflow) {
  const std::int64_t bytes = std::int64_t{1} << 62;
  const WorkShape shape{.block_threads = 256, .tiles = bytes / 4096, .bytes_in_flight_per_block = 4096};
  EXPECT_GT(predict(h100_facts(), shape, bytes, 6, {.max_blocks = 792}).us(), 1e9);
}

TEST(Model, ASecondKernelIsCheaperThanALastBlockInGraphsAlone) {
  // Measured on both GPUs, where the device begins when all is enqueued, CUDA 13.0, 2026-11.
  const auto us = [](std::int64_t bytes_in_flight, bool second_kernel, LaunchContext context) {
    Work work(64);
    work.shape.bytes_in_flight_per_block = bytes_in_flight;
    work.shape.uses_last_block_ticket = !second_kernel;
    work.shape.launches = second_kernel ? 2 : 1;
    work.shape.dependent_launch = true;
    return predict(h100_facts(), work.shape, work.bytes, kResident, {.max_blocks = 132}, context).us();
  };
  for (const std::int64_t bytes_in_flight : {4096, 65536}) {  // more and less than enqueueing two kernels takes
    EXPECT_LT(us(bytes_in_flight, true, LaunchContext::graph), us(bytes_in_flight, false, LaunchContext::graph));
    EXPECT_GT(us(bytes_in_flight, true, LaunchContext::stream), us(bytes_in_flight, false, LaunchContext::stream));
  }
  EXPECT_LT(us(4096, false, LaunchContext::graph), us(4096, false, LaunchContext::stream));
}

TEST(Model, DependentLaunchesAreCheaperWhereTheDeviceHasThem) {
  Work work(64);
  work.shape.launches = 2;
  const auto us = [&](const DeviceFacts& facts) {
    return predict(facts, work.shape, work.bytes, kResident, {.max_blocks = 132}, LaunchContext::graph).us();
  };
  const double plain = us(h100_facts());
  work.shape.dependent_launch = true;
  EXPECT_LT(us(h100_facts()), plain - 0.5);
  DeviceFacts without = h100_facts();
  without.has_dependent_launch = false;
  EXPECT_EQ(us(without), plain);
}

TEST(Model, TheBestShapeTakesAboutWhatWasMeasured) {
  // Best of 60 to 180 candidates of `reduce` for a sum of n floats in a replayed graph; H100, CUDA 13.0, 2026-11-21.
  constexpr std::array<std::pair<int, double>, 8> kMeasured{
      {{10, 1.23}, {13, 1.49}, {16, 2.28}, {18, 2.90}, {20, 4.29}, {22, 7.73}, {25, 45.98}, {28, 344.3}}};
  double earlier = 0;
  for (const auto& [exponent, measured_us] : kMeasured) {
    const std::int64_t bytes = std::int64_t{4} << exponent;
    double best = 1e30;
    for (int threads : {128, 256, 512, 1024})
      for (int unroll : {1, 2, 4, 8})
        for (bool one_block : {true, false}) {
          const std::int64_t tile = 16 * threads * unroll;
          const WorkShape shape{.block_threads = threads,
                                .tiles = (bytes + tile - 1) / tile,
                                .bytes_in_flight_per_block = tile,
                                .one_block = one_block,
                                .launches = one_block ? 1 : 2,
                                .dependent_launch = true};
          for (std::int64_t per_sm : {1, 2, 4, 8})
            best = std::min(best, predict(h100_facts(), shape, bytes, 2048 / threads,
                                          {.max_blocks = one_block ? 1 : 132 * per_sm}, LaunchContext::graph).us());
        }
    EXPECT_GE(best, earlier) << exponent;
    EXPECT_GT(best, measured_us / 1.45) << exponent;
    EXPECT_LT(best, measured_us * 1.25) << exponent;
    earlier = best;
  }
}

TEST(Model, TheRooflineIsALaunchAndTheBytes) {
  const TotalFamily family;
  Problem problem = family.problem(std::int64_t{1} << 28);
  EXPECT_NEAR(roofline_us(h100_facts(), {}, problem), 346, 5);
  EXPECT_NEAR(roofline_us(h100_facts(), {}, problem, InputState::warm), 2.66, 0.01) << "a cache has more bandwidth";
  problem = family.problem(0);
  EXPECT_NEAR(roofline_us(h100_facts(), {}, problem), 2.66, 0.01);
  problem.launch_context = LaunchContext::graph;
  EXPECT_NEAR(roofline_us(h100_facts(), {}, problem), 0.50, 0.01);
  EXPECT_EQ(roofline_us(two_core_host_facts(), {}, problem), 0);
}

TEST(Model, WhatWasMeasuredOfTheDeviceGoesBeforeTheConstants) {
  const DeviceLimits limits{.enqueue_us = 4, .stream_launch_us = 1.5, .graph_launch_us = 1.25, .read_gbps = 1000};
  const TotalFamily family;
  Problem problem = family.problem(std::int64_t{1} << 28);  // of 4 bytes
  EXPECT_NEAR(roofline_us(h100_facts(), limits, problem), 1.5 + 1073.74, 0.1);
  EXPECT_EQ(host_pace_us(h100_facts(), limits, problem), 0) << "never waits for the host";
  problem = family.problem(1000);
  EXPECT_EQ(roofline_us(h100_facts(), limits, problem), 4);
  EXPECT_EQ(host_pace_us(h100_facts(), limits, problem), 4);
  EXPECT_NEAR(host_pace_us(h100_facts(), {}, problem), 2.66, 0.01);
  problem.launch_context = LaunchContext::graph;
  EXPECT_NEAR(roofline_us(h100_facts(), limits, problem), 1.254, 0.001);
  EXPECT_EQ(host_pace_us(h100_facts(), limits, problem), 0);
  DeviceFacts unknown = h100_facts();
  unknown.memory_bus_bits = 0;
  problem.launch_context = LaunchContext::stream;
  EXPECT_EQ(roofline_us(unknown, {}, problem), 0);
  EXPECT_EQ(roofline_us(unknown, limits, problem), 4) << "also where the driver does not tell the bandwidth";
}

}  // namespace
}  // namespace hone
