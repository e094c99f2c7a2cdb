#include "runtime/search/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

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

TEST(Model, OneBlockTooManyCostsAWholeWave) {
  const DeviceFacts facts = gpu_of_82_sms();  // 492 blocks at once
  const double two_waves = Work(984).on(facts, 984).us;
  const double one_more = Work(985).on(facts, 985).us;
  const double three_waves = Work(1476).on(facts, 1476).us;
  EXPECT_GT(one_more, 1.2 * two_waves);
  EXPECT_NEAR(one_more, three_waves, 0.05 * three_waves);
}

TEST(Model, AThousandBlocksOn82SmsTakeAsLongAs1476) {
  const DeviceFacts facts = gpu_of_82_sms();
  Work work(1024);
  const double us = work.on(facts, 1024).us;
  const double full = Work(1476).on(facts, 1476).us;
  EXPECT_EQ(work.on(facts, 1024).blocks, 1024);
  EXPECT_NEAR(us, full, 0.03 * full);  // apart from the partial results to read
  EXPECT_GT(us, 1.15 * Work(984).on(facts, 984).us);
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

TEST(Model, MoreBytesInFlightAreNeverSlowerInOneWave) {
  double earlier = 1e30;
  for (std::int64_t per_sm : {1, 2, 3, 6}) {
    const double us = Work(132 * 6 * 100).on(h100_facts(), 132 * per_sm).us;
    EXPECT_LE(us, earlier) << per_sm;
    earlier = us;
  }
}

TEST(Model, ThreadsThatRunInTurnWantSharesThatFitTheCache) {
  const Work work(1024);  // 64 MiB
  const DeviceFacts facts = two_core_host_facts();
  EXPECT_LT(work.on(facts, 31, 1).us, 0.7 * work.on(facts, 2, 1).us);
  EXPECT_GT(work.on(facts, 1023, 1).us, work.on(facts, 31, 1).us);  // starting threads costs as well
}

TEST(Model, MoreBytesAreNeverFaster) {
  for (const DeviceFacts& facts : {h100_facts(), gpu_of_82_sms(), two_core_host_facts()}) {
    double earlier = 0;
    for (std::int64_t tiles = 1; tiles < 3000000; tiles = tiles * 5 / 4 + 1) {
      const double us = Work(tiles).on(facts, facts.sm_count * 4).us;
      EXPECT_GE(us, earlier * 0.999) << tiles;
      earlier = us;
    }
  }
}

TEST(Model, NothingExceedsTheBandwidth) {
  const DeviceFacts facts = h100_facts();
  for (int resident : {1, 2, 8, 32}) {
    const Work work(1 << 20);
    const double gbps = static_cast<double>(work.bytes) / work.on(facts, 132 * resident, resident).us * 1e-3;
    EXPECT_LE(gbps, peak_bandwidth_gbps(facts));
  }
}

TEST(Model, FurtherLaunchesAndJoinsCost) {
  Work work(10000);
  const double plain = work.on(h100_facts(), 528).us;
  work.shape.joins_blocks = true;
  const double joined = work.on(h100_facts(), 528).us;
  work.shape.joins_blocks = false;
  work.shape.launches = 2;
  EXPECT_GT(joined, plain);
  EXPECT_GT(work.on(h100_facts(), 528).us, joined);
}

TEST(Model, NoWorkStillTakesALaunch) {
  const WorkShape empty{.block_threads = 128, .tiles = 1, .bytes_in_flight_per_block = 2048};
  for (const DeviceFacts& facts : {h100_facts(), two_core_host_facts()}) {
    const Prediction prediction = predict(facts, empty, 4, 1, {.max_blocks = 1});
    EXPECT_GE(prediction.us, model_constants(facts).launch_us);
    EXPECT_LT(prediction.us, 1000);
  }
}

TEST(Model, BytesInFlightFollowLittlesLaw) {
  // 93 % of 3352 GB/s for 0.7 µs on 132 SMs: 16.5 KiB.
  const std::int64_t needed = bytes_in_flight_needed(h100_facts());
  EXPECT_GT(needed, 14 << 10);
  EXPECT_LT(needed, 20 << 10);
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
  EXPECT_GT(predict(h100_facts(), shape, bytes, 6, {.max_blocks = 792}).us, 1e9);
}

TEST(Model, InAGraphASecondKernelIsCheaperThanALastBlockAndInAStreamItIsNot) {
  // Measured on both GPUs between 2^16 and 2^20 floats, CUDA 13.0, 2026-11.
  const auto us = [](bool second_kernel, LaunchContext context) {
    Work work(64);
    work.shape.joins_blocks = !second_kernel;
    work.shape.launches = second_kernel ? 2 : 1;
    return predict(h100_facts(), work.shape, work.bytes, kResident, {.max_blocks = 132}, context).us;
  };
  EXPECT_LT(us(true, LaunchContext::graph), us(false, LaunchContext::graph));
  EXPECT_GT(us(true, LaunchContext::stream), us(false, LaunchContext::stream));
  EXPECT_LT(us(false, LaunchContext::graph), us(false, LaunchContext::stream));
}

TEST(Model, DependentLaunchesAreCheaperWhereTheDeviceHasThem) {
  Work work(64);
  work.shape.launches = 2;
  const auto us = [&](const DeviceFacts& facts) {
    return predict(facts, work.shape, work.bytes, kResident, {.max_blocks = 132}, LaunchContext::graph).us;
  };
  const double plain = us(h100_facts());
  work.shape.dependent_launch = true;
  EXPECT_LT(us(h100_facts()), plain - 0.5);
  DeviceFacts without = h100_facts();
  without.has_dependent_launch = false;
  EXPECT_EQ(us(without), plain);
}

TEST(Model, TheBestShapeTakesAboutWhatWasMeasured) {
  // Best of 40 to 190 variants of a grid-stride sum of n floats on an H100, CUDA 13.0, 2026-11-21.
  constexpr std::array<std::pair<int, double>, 9> kMeasured{
      {{10, 2.68}, {14, 2.83}, {16, 3.77}, {18, 4.83}, {20, 6.39}, {22, 10.6}, {24, 26.6}, {28, 345.8}, {30, 1379}}};
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
                                .joins_blocks = !one_block};
          for (std::int64_t per_sm : {1, 2, 4, 8})
            best = std::min(best, predict(h100_facts(), shape, bytes, 2048 / threads,
                                          {.max_blocks = one_block ? 1 : 132 * per_sm}).us);
        }
    // Up to 2^18 what a kernel does hides in part behind the enqueueing of the next, which the model does not know.
    EXPECT_GE(best, earlier) << exponent;
    EXPECT_GT(best, measured_us / 1.1) << exponent;
    EXPECT_LT(best, measured_us * (exponent <= 18 ? 1.6 : 1.1)) << exponent;
    earlier = best;
  }
}

TEST(Model, LoadsThatWaitForEachOtherTakeTheirTimeHoweverManyBlocksThereAre) {
  WorkShape shape{.block_threads = 256, .tiles = 1 << 16, .bytes_in_flight_per_block = 16 << 10};
  const auto predicted_us = [&](std::int64_t bytes) {
    return predict(h100_facts(), shape, bytes, 8, {.max_blocks = 132 * 8}).us;
  };
  const double divided_us = predicted_us(1 << 20);
  shape.serial_loads = 1000;
  EXPECT_GT(predicted_us(1 << 20), 500);
  EXPECT_LT(divided_us, 50);
  const double of_many_bytes = predicted_us(std::int64_t{1} << 33);  // which takes longer than that anyway
  shape.serial_loads = 0;
  EXPECT_EQ(predicted_us(std::int64_t{1} << 33), of_many_bytes);
}

TEST(Model, TheRooflineIsALaunchAndTheBytes) {
  const TotalFamily family;
  Problem problem = family.problem(std::int64_t{1} << 28);
  EXPECT_NEAR(roofline_us(h100_facts(), problem), 346, 5);
  problem = family.problem(0);
  EXPECT_NEAR(roofline_us(h100_facts(), problem), 2.66, 0.01);
  problem.launch_context = LaunchContext::graph;
  EXPECT_NEAR(roofline_us(h100_facts(), problem), 0.50, 0.01);
  EXPECT_EQ(roofline_us(two_core_host_facts(), problem), 0);
}

}  // namespace
}  // namespace hone
