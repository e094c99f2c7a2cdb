#include <hone/sdk/occupancy.h>

#include <algorithm>
#include <cstdint>

#include "runtime/families/counts.h"

namespace hone {
namespace {

constexpr std::int64_t kNoLimit = OccupancyLimits::kUnlimited;

// cudaOccRegAllocationGranularity() and cudaOccRegAllocationMaxPerThread().
constexpr std::int64_t kRegistersPerAllocation = 256;
constexpr int kMaxRegistersPerThread = 256;

std::int64_t round_up(std::int64_t value, std::int64_t to) { return divide_up(value, to) * to; }

// cudaOccSubPartitionsPerMultiprocessor(): schedulers of an SM, each with its own share of the registers.
std::int64_t sub_partitions(const DeviceFacts& facts) { return facts.compute_capability == 60 ? 2 : 4; }

// cudaOccSMemAllocationGranularity().
std::int64_t smem_granularity(const DeviceFacts& facts) {
  return facts.compute_capability >= 50 && facts.compute_capability < 80 ? 256 : 128;
}

// cudaOccMaxBlocksPerSMRegsLimit(). A warp lives in one sub-partition, so a remainder there that is too small for a
// warp is lost. The block's own limit counts its warps as if they filled all sub-partitions evenly: that is what the
// hardware checks at launch.
std::int64_t limit_by_registers(const DeviceFacts& facts, const Resources& resources, std::int64_t warps_per_block) {
  if (facts.registers_per_sm == 0) return kNoLimit;
  if (resources.registers > kMaxRegistersPerThread) return 0;
  const std::int64_t per_warp =
      round_up(std::int64_t{resources.registers} * facts.warp_threads, kRegistersPerAllocation);
  if (per_warp == 0) return kNoLimit;
  const std::int64_t partitions = sub_partitions(facts);
  if (per_warp * round_up(warps_per_block, partitions) > facts.registers_per_block) return 0;
  const std::int64_t warps_per_partition = facts.registers_per_sm / partitions / per_warp;
  return warps_per_partition * partitions / warps_per_block;
}

// cudaOccMaxBlocksPerSMSmemLimit(). Since compute capability 8.0 the system's own share comes on top of what a block
// may have.
std::int64_t limit_by_smem(const DeviceFacts& facts, const Resources& resources, std::size_t dynamic_smem_bytes) {
  if (dynamic_smem_bytes > static_cast<std::size_t>(facts.smem_bytes_per_block_optin)) return 0;
  const std::int64_t reserved = facts.smem_bytes_reserved_per_block;
  const std::int64_t per_block = round_up(
      resources.static_smem_bytes + static_cast<std::int64_t>(dynamic_smem_bytes) + reserved, smem_granularity(facts));
  if (per_block > facts.smem_bytes_per_block_optin + reserved) return 0;
  if (per_block == 0 || facts.smem_bytes_per_sm == 0) return kNoLimit;
  return facts.smem_bytes_per_sm / per_block;
}

}  // namespace

OccupancyLimits occupancy_limits(const DeviceFacts& facts, const Resources& resources, int block_threads,
                                 std::size_t dynamic_smem_bytes) {
  if (block_threads < 1 || block_threads > std::min(facts.max_threads_per_block, resources.max_threads_per_block))
    return {{0, facts.max_blocks_per_sm, OccupancyLimits::kUnlimited, OccupancyLimits::kUnlimited}};
  const std::int64_t warps_per_block = divide_up(block_threads, facts.warp_threads);
  return {{static_cast<int>(facts.max_threads_per_sm / facts.warp_threads / warps_per_block), facts.max_blocks_per_sm,
           static_cast<int>(limit_by_registers(facts, resources, warps_per_block)),
           static_cast<int>(limit_by_smem(facts, resources, dynamic_smem_bytes))}};
}

int resident_blocks(const DeviceFacts& facts, const Resources& resources, int block_threads,
                    std::size_t dynamic_smem_bytes) {
  return occupancy_limits(facts, resources, block_threads, dynamic_smem_bytes).resident_blocks();
}

PotentialBlock max_potential_block(const DeviceFacts& facts, const Resources& resources,
                                   std::size_t dynamic_smem_bytes) {
  const int most = std::min(facts.max_threads_per_block, resources.max_threads_per_block);
  PotentialBlock best;
  for (int whole_warps = static_cast<int>(round_up(most, facts.warp_threads)); whole_warps > 0;
       whole_warps -= facts.warp_threads) {
    const int threads = std::min(whole_warps, most);
    const int blocks = resident_blocks(facts, resources, threads, dynamic_smem_bytes);
    if (blocks * threads > best.resident_blocks * best.threads) best = {threads, blocks};
  }
  return best;
}

Waves waves_of(const DeviceFacts& facts, int resident_blocks, std::int64_t blocks) {
  const std::int64_t slots = std::int64_t{resident_blocks} * facts.sm_count;
  if (slots == 0) return {};
  return {.slots = slots, .whole = blocks / slots, .last_blocks = blocks % slots};
}

}  // namespace hone
