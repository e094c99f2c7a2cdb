#include <hone/sdk/occupancy.h>

#include <gtest/gtest.h>

namespace hone {
namespace {

DeviceFacts h100() {
  DeviceFacts facts;
  facts.compute_capability = 90;
  facts.sm_count = 132;
  facts.smem_bytes_per_sm = 233472;
  facts.smem_bytes_per_block_optin = 232448;
  facts.smem_bytes_reserved_per_block = 1024;
  return facts;
}

// The worked example of Kirk and Hwu, "Programming Massively Parallel Processors": an SM with 1536 threads, 8 blocks.
DeviceFacts textbook() {
  DeviceFacts facts;
  facts.max_threads_per_sm = 1536;
  facts.max_blocks_per_sm = 8;
  facts.registers_per_sm = 0;
  return facts;
}

TEST(Occupancy, TextbookSmallBlocksLeaveThreadsIdle) {
  EXPECT_EQ(8 * 8 * resident_blocks(textbook(), {}, 8 * 8, 0), 512);
}

TEST(Occupancy, TextbookMiddleBlocksFillTheSm) {
  EXPECT_EQ(16 * 16 * resident_blocks(textbook(), {}, 16 * 16, 0), 1536);
}

TEST(Occupancy, TextbookLargeBlocksFitOnce) { EXPECT_EQ(32 * 32 * resident_blocks(textbook(), {}, 32 * 32, 0), 1024); }

TEST(Occupancy, BlocksOccupyWholeWarps) {
  EXPECT_EQ(resident_blocks(h100(), {}, 1024, 0), 2);
  EXPECT_EQ(resident_blocks(h100(), {}, 513, 0), 3);  // 17 warps of 64
  EXPECT_EQ(resident_blocks(h100(), {}, 1, 0), 32);
}

TEST(Occupancy, RegistersAreGivenOutPerWarpIn256) {
  EXPECT_EQ(resident_blocks(h100(), {.registers = 32}, 256, 0), 8);
  EXPECT_EQ(resident_blocks(h100(), {.registers = 33}, 256, 0), 6);  // 40 registers × 32 threads: 12 warps a scheduler
  EXPECT_EQ(resident_blocks(h100(), {.registers = 40}, 256, 0), 6);
  EXPECT_EQ(resident_blocks(h100(), {.registers = 255}, 256, 0), 1);
}

TEST(Occupancy, ABlockWithTooManyRegistersDoesNotFit) {
  EXPECT_EQ(resident_blocks(h100(), {.registers = 64}, 1024, 0), 1);
  EXPECT_EQ(resident_blocks(h100(), {.registers = 65}, 1024, 0), 0);
  EXPECT_EQ(resident_blocks(h100(), {.registers = 257}, 32, 0), 0);
}

TEST(Occupancy, RegistersDoNotLimitADeviceWithoutThem) {
  DeviceFacts facts = h100();
  facts.registers_per_sm = 0;
  EXPECT_EQ(resident_blocks(facts, {.registers = 255}, 1024, 0), 2);
}

TEST(Occupancy, SharedMemoryCountsTheSystemsShare) {
  EXPECT_EQ(resident_blocks(h100(), {}, 32, 113 * 1024), 2);      // (113 + 1) × 2 KiB = 228 KiB
  EXPECT_EQ(resident_blocks(h100(), {}, 32, 113 * 1024 + 1), 1);  // 128 bytes more per block
  EXPECT_EQ(resident_blocks(h100(), {.static_smem_bytes = 100 * 1024}, 32, 13 * 1024), 2);
}

TEST(Occupancy, SharedMemoryBeyondTheOptInLimitDoesNotFit) {
  EXPECT_EQ(resident_blocks(h100(), {}, 32, 232448), 1);
  EXPECT_EQ(resident_blocks(h100(), {}, 32, 232449), 0);
  EXPECT_EQ(resident_blocks(h100(), {.static_smem_bytes = 1}, 32, 232448), 0);
  EXPECT_EQ(resident_blocks(h100(), {}, 32, SIZE_MAX), 0);
}

TEST(Occupancy, UnknownSharedMemoryPerSmDoesNotLimit) {
  DeviceFacts facts;
  facts.smem_bytes_per_sm = 0;
  EXPECT_EQ(resident_blocks(facts, {.static_smem_bytes = 40000}, 128, 0), 16);
}

TEST(Occupancy, ABlockWithoutThreadsOrWithTooManyDoesNotFit) {
  EXPECT_EQ(resident_blocks(h100(), {}, 0, 0), 0);
  EXPECT_EQ(resident_blocks(h100(), {}, -32, 0), 0);
  EXPECT_EQ(resident_blocks(h100(), {}, 1025, 0), 0);
  EXPECT_EQ(resident_blocks(h100(), {.max_threads_per_block = 256}, 257, 0), 0);
}

TEST(OccupancyLimits, NameWhatLimits) {
  const OccupancyLimits limits = occupancy_limits(h100(), {.registers = 40, .static_smem_bytes = 1024}, 256, 0);
  EXPECT_EQ(limits[SmResource::threads], 8);
  EXPECT_EQ(limits[SmResource::blocks], 32);
  EXPECT_EQ(limits[SmResource::registers], 6);
  EXPECT_EQ(limits[SmResource::smem], 114);
  EXPECT_TRUE(limits.is_limited_by(SmResource::registers));
  EXPECT_FALSE(limits.is_limited_by(SmResource::threads));
}

TEST(OccupancyLimits, OfWhatIsNotNeededThereAreNone) {
  EXPECT_EQ(occupancy_limits(textbook(), {}, 256, 0)[SmResource::registers], OccupancyLimits::kUnlimited);
}

TEST(MaxPotentialBlock, IsTheLargestWithTheMostThreads) {
  const PotentialBlock chosen = max_potential_block(h100(), {.registers = 40}, 0);
  EXPECT_EQ(chosen.threads, 768);
  EXPECT_EQ(chosen.resident_blocks, 2);
  EXPECT_EQ(max_potential_block(h100(), {.registers = 40, .max_threads_per_block = 128}, 0).threads, 128);
  EXPECT_EQ(max_potential_block(h100(), {.registers = 257}, 0).threads, 0);
}

// 82 SMs with 6 blocks each: a grid of 1024 leaves 40 blocks to a third wave.
TEST(Waves, TheTailWaitsForAWholeWave) {
  DeviceFacts facts;
  facts.sm_count = 82;
  const Waves waves = waves_of(facts, 6, 1024);
  EXPECT_EQ(waves.slots, 492);
  EXPECT_EQ(waves.whole, 2);
  EXPECT_EQ(waves.last_blocks, 40);
  EXPECT_EQ(waves.count(), 3);
  EXPECT_DOUBLE_EQ(waves.waste(), 452.0 / 1476);
}

TEST(Waves, WholeWavesWasteNothing) {
  DeviceFacts facts;
  facts.sm_count = 82;
  EXPECT_EQ(waves_of(facts, 6, 984).count(), 2);
  EXPECT_DOUBLE_EQ(waves_of(facts, 6, 984).waste(), 0);
  EXPECT_EQ(waves_of(facts, 6, 0).count(), 0);
  EXPECT_EQ(waves_of(facts, 0, 1024).slots, 0);
}

}  // namespace
}  // namespace hone
