#include <hone/device_facts.h>

#include <fmt/format.h>

namespace hone {

double peak_bandwidth_gbps(const DeviceFacts& facts) {
  return 2.0 * facts.memory_clock_khz * 1e3 * (facts.memory_bus_bits / 8.0) / 1e9;
}

std::string tuning_identity(const DeviceFacts& facts) {
  return fmt::format(
      "kind={};name={};architecture={};compute_capability={};sm_count={};warp_threads={};max_threads_per_block={};"
      "max_threads_per_sm={};max_blocks_per_sm={};registers_per_sm={};registers_per_block={};smem_bytes_per_sm={};"
      "smem_bytes_per_block={};smem_bytes_per_block_optin={};smem_bytes_reserved_per_block={};l2_bytes={};"
      "memory_clock_khz={};memory_bus_bits={};",
      facts.kind, facts.name, facts.architecture, facts.compute_capability, facts.sm_count, facts.warp_threads,
      facts.max_threads_per_block, facts.max_threads_per_sm, facts.max_blocks_per_sm, facts.registers_per_sm,
      facts.registers_per_block, facts.smem_bytes_per_sm, facts.smem_bytes_per_block, facts.smem_bytes_per_block_optin,
      facts.smem_bytes_reserved_per_block, facts.l2_bytes, facts.memory_clock_khz, facts.memory_bus_bits);
}

}  // namespace hone
