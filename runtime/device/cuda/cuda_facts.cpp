#include "runtime/device/cuda/cuda_facts.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <hone/sdk/known_gpus.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

int attribute(int ordinal, cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal),
        fmt::format("reading attribute {} of cuda:{}", static_cast<int>(which), ordinal));
  return value;
}

}  // namespace

DeviceFacts query_cuda_facts(int ordinal) {
  const TraceRange traced([] { return std::string("facts"); });
  cudaDeviceProp properties{};
  {
    const TraceRange traced_properties([] { return std::string("properties"); });
    check(cudaGetDeviceProperties(&properties, ordinal), fmt::format("reading the properties of cuda:{}", ordinal));
  }
  int driver_version = 0;
  check(cudaDriverGetVersion(&driver_version), "reading the driver's version");

  const auto get = [ordinal](cudaDeviceAttr which) { return attribute(ordinal, which); };
  DeviceFacts facts;
  facts.kind = "cuda";
  facts.name = properties.name;
  facts.compute_capability = 10 * get(cudaDevAttrComputeCapabilityMajor) + get(cudaDevAttrComputeCapabilityMinor);
  facts.architecture = fmt::format("sm_{}", facts.compute_capability);
  facts.driver = cuda_version_string(driver_version);
  facts.sm_count = get(cudaDevAttrMultiProcessorCount);
  facts.warp_threads = get(cudaDevAttrWarpSize);
  facts.max_threads_per_block = get(cudaDevAttrMaxThreadsPerBlock);
  facts.max_threads_per_sm = get(cudaDevAttrMaxThreadsPerMultiProcessor);
  facts.max_blocks_per_sm = get(cudaDevAttrMaxBlocksPerMultiprocessor);
  facts.registers_per_sm = get(cudaDevAttrMaxRegistersPerMultiprocessor);
  facts.registers_per_block = get(cudaDevAttrMaxRegistersPerBlock);
  facts.smem_bytes_per_sm = get(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  facts.smem_bytes_per_block = get(cudaDevAttrMaxSharedMemoryPerBlock);
  facts.smem_bytes_per_block_optin = get(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  facts.smem_bytes_reserved_per_block = get(cudaDevAttrReservedSharedMemoryPerBlock);
  facts.l2_bytes = get(cudaDevAttrL2CacheSize);
  facts.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  facts.sm_clock_khz = get(cudaDevAttrClockRate);
  facts.max_grid_x = get(cudaDevAttrMaxGridDimX);
  facts.max_grid_y = get(cudaDevAttrMaxGridDimY);
  facts.max_grid_z = get(cudaDevAttrMaxGridDimZ);
  // The attribute, since CUDA 13 took the field out of cudaDeviceProp; 0 where the driver does not tell.
  facts.memory_clock_khz = get(cudaDevAttrMemoryClockRate);
  facts.memory_bus_bits = get(cudaDevAttrGlobalMemoryBusWidth);
  facts.has_dependent_launch = has_dependent_launch(facts.compute_capability);
  facts.max_cluster_blocks = max_cluster_blocks(facts.compute_capability);
  return facts;
}

}  // namespace hone
