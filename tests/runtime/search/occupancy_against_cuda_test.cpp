// resident_blocks() against the toolkit's own calculator, over a sweep on GPUs that need not be there.
#include <cuda_occupancy.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include <hone/sdk/known_gpus.h>
#include <hone/sdk/occupancy.h>

namespace hone {
namespace {

/// A GPU of one SM.
DeviceFacts facts_of(const std::string& architecture) {
  DeviceFacts facts = *architecture_facts(architecture);
  facts.sm_count = 1;
  return facts;
}

cudaOccDeviceProp properties_of(const DeviceFacts& facts) {
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
  return properties;
}

cudaOccFuncAttributes attributes_of(const DeviceFacts& facts, const Resources& resources) {
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = resources.max_threads_per_block;
  attributes.numRegs = resources.registers;
  attributes.sharedSizeBytes = static_cast<std::size_t>(resources.static_smem_bytes);
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes =
      static_cast<std::size_t>(facts.smem_bytes_per_block_optin - resources.static_smem_bytes);
  attributes.numBlockBarriers = 1;
  return attributes;
}

/// The toolkit's answer; -1 when it does not know the architecture.
int toolkit_answer(const DeviceFacts& facts, const Resources& resources, int block_threads,
                   std::size_t dynamic_smem_bytes) {
  const cudaOccDeviceProp properties = properties_of(facts);
  const cudaOccFuncAttributes attributes = attributes_of(facts, resources);
  const cudaOccDeviceState state;
  cudaOccResult result{};
  const cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state,
                                                                      block_threads, dynamic_smem_bytes);
  return status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1;
}

class OccupancyAgainstCuda : public testing::TestWithParam<std::string> {};

TEST_P(OccupancyAgainstCuda, AgreesOverTheSweep) {
  const DeviceFacts facts = facts_of(GetParam());
  const std::array<int, 17> blocks{1, 31, 32, 33, 64, 96, 100, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024};
  const std::array<int, 5> static_smem{0, 1, 1000, 4096, 48 * 1024};
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

TEST_P(OccupancyAgainstCuda, ChoosesTheSameBlock) {
  const DeviceFacts facts = facts_of(GetParam());
  const cudaOccDeviceProp properties = properties_of(facts);
  const cudaOccDeviceState state;
  for (int registers = 1; registers <= 255; ++registers) {
    for (const int most_threads : {1024, 1000, 256, 33}) {
      for (const int static_bytes : {0, 1000, 48 * 1024}) {
        const Resources resources{
            .registers = registers, .static_smem_bytes = static_bytes, .max_threads_per_block = most_threads};
        const cudaOccFuncAttributes attributes = attributes_of(facts, resources);
        int grid = 0, block = 0;
        ASSERT_EQ(
            cudaOccMaxPotentialOccupancyBlockSize(&grid, &block, &properties, &attributes, &state, nullptr, 2048),
            CUDA_OCC_SUCCESS);
        const PotentialBlock chosen = max_potential_block(facts, resources, 2048);
        ASSERT_EQ(chosen.threads, block) << registers << " registers, " << static_bytes << " bytes";
        ASSERT_EQ(chosen.resident_blocks * facts.sm_count, grid);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, OccupancyAgainstCuda, testing::ValuesIn(known_architectures()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace hone
