// resident_blocks() against the toolkit's own calculator, over a sweep on GPUs that need not be there.
#include <cuda_occupancy.h>
#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>

#include "runtime/search/occupancy.h"

namespace hone {
namespace {

constexpr int kKiB = 1024;

/// What tells one architecture's SM from another's: CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability".
struct Architecture {
  const char* gpu;
  int compute_capability;
  int sm_count;
  int max_threads_per_sm;
  int max_blocks_per_sm;
  int smem_bytes_per_sm;
  int smem_bytes_per_block_optin;
  int smem_bytes_reserved_per_block;

  friend void PrintTo(const Architecture& architecture, std::ostream* out) { *out << architecture.gpu; }
};

constexpr std::array<Architecture, 9> kArchitectures{{
    {"P40", 61, 30, 2048, 32, 96 * kKiB, 48 * kKiB, 0},
    {"V100", 70, 80, 2048, 32, 96 * kKiB, 96 * kKiB, 0},
    {"T4", 75, 40, 1024, 16, 64 * kKiB, 64 * kKiB, 0},
    {"A100", 80, 108, 2048, 32, 164 * kKiB, 163 * kKiB, kKiB},
    {"RTX3090", 86, 82, 1536, 16, 100 * kKiB, 99 * kKiB, kKiB},
    {"L40", 89, 142, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB},
    {"H100", 90, 132, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {"B200", 100, 148, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {"RTX5090", 120, 170, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB},
}};

DeviceFacts facts_of(const Architecture& architecture) {
  DeviceFacts facts;
  facts.compute_capability = architecture.compute_capability;
  facts.sm_count = architecture.sm_count;
  facts.max_threads_per_sm = architecture.max_threads_per_sm;
  facts.max_blocks_per_sm = architecture.max_blocks_per_sm;
  facts.smem_bytes_per_sm = architecture.smem_bytes_per_sm;
  facts.smem_bytes_per_block_optin = architecture.smem_bytes_per_block_optin;
  facts.smem_bytes_reserved_per_block = architecture.smem_bytes_reserved_per_block;
  return facts;
}

/// The toolkit's answer; -1 when it does not know the architecture.
int toolkit_answer(const DeviceFacts& facts, const Resources& resources, int block_threads,
                   std::size_t dynamic_smem_bytes) {
  cudaOccDeviceProp properties;
  properties.computeMajor = facts.compute_capability / 10;
  properties.computeMinor = facts.compute_capability % 10;
  properties.maxThreadsPerBlock = facts.max_threads_per_block;
  properties.maxThreadsPerMultiprocessor = facts.max_threads_per_sm;
  properties.regsPerBlock = facts.registers_per_block;
  properties.regsPerMultiprocessor = facts.registers_per_sm;
  properties.warpSize = facts.warp_threads;
  properties.sharedMemPerBlock = static_cast<std::size_t>(facts.smem_bytes_per_block);
  properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(facts.smem_bytes_per_sm);
  properties.numSms = facts.sm_count;
  properties.sharedMemPerBlockOptin = static_cast<std::size_t>(facts.smem_bytes_per_block_optin);
  properties.reservedSharedMemPerBlock = static_cast<std::size_t>(facts.smem_bytes_reserved_per_block);

  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = resources.max_threads_per_block;
  attributes.numRegs = resources.registers;
  attributes.sharedSizeBytes = static_cast<std::size_t>(resources.static_smem_bytes);
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes =
      static_cast<std::size_t>(facts.smem_bytes_per_block_optin - resources.static_smem_bytes);
  attributes.numBlockBarriers = 1;

  const cudaOccDeviceState state;
  cudaOccResult result{};
  const cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state,
                                                                      block_threads, dynamic_smem_bytes);
  return status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1;
}

class OccupancyAgainstCuda : public testing::TestWithParam<Architecture> {};

TEST_P(OccupancyAgainstCuda, AgreesOverTheSweep) {
  const DeviceFacts facts = facts_of(GetParam());
  const std::array<int, 17> blocks{1, 31, 32, 33, 64, 96, 100, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024};
  const std::array<int, 5> static_smem{0, 1, 1000, 4096, 48 * kKiB};
  const std::array<std::size_t, 12> dynamic_smem{0,     1,     127,   128,   1024,   5000,
                                                 20480, 33333, 49152, 65536, 101376, 150000};
  for (int registers = 0; registers <= 255; ++registers) {
    for (const int block_threads : blocks) {
      for (const int static_bytes : static_smem) {
        for (const std::size_t dynamic_bytes : dynamic_smem) {
          const Resources resources{.registers = registers, .static_smem_bytes = static_bytes};
          ASSERT_EQ(resident_blocks(facts, resources, block_threads, dynamic_bytes),
                    toolkit_answer(facts, resources, block_threads, dynamic_bytes))
              << registers << " registers, " << block_threads << " threads, " << static_bytes << " + " << dynamic_bytes
              << " bytes of shared memory";
        }
      }
    }
  }
}

TEST_P(OccupancyAgainstCuda, AgreesOnEveryBlockSize) {
  const DeviceFacts facts = facts_of(GetParam());
  for (int block_threads = 1; block_threads <= 1056; ++block_threads) {
    for (const int registers : {0, 16, 40, 72, 128, 255}) {
      const Resources resources{.registers = registers};
      ASSERT_EQ(resident_blocks(facts, resources, block_threads, 0), toolkit_answer(facts, resources, block_threads, 0))
          << registers << " registers, " << block_threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, OccupancyAgainstCuda, testing::ValuesIn(kArchitectures),
                         [](const auto& parameter) { return std::string(parameter.param.gpu); });

}  // namespace
}  // namespace hone
