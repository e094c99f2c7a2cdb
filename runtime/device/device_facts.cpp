#include <hone/device_facts.h>
#include <hone/sdk/known_gpus.h>

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace hone {
namespace {

struct IntField {
  std::string_view key;
  int DeviceFacts::*member;
};

constexpr std::array kIntFields{
    IntField{"compute_capability", &DeviceFacts::compute_capability},
    IntField{"sm_count", &DeviceFacts::sm_count},
    IntField{"warp_threads", &DeviceFacts::warp_threads},
    IntField{"max_threads_per_block", &DeviceFacts::max_threads_per_block},
    IntField{"max_threads_per_sm", &DeviceFacts::max_threads_per_sm},
    IntField{"max_blocks_per_sm", &DeviceFacts::max_blocks_per_sm},
    IntField{"registers_per_sm", &DeviceFacts::registers_per_sm},
    IntField{"registers_per_block", &DeviceFacts::registers_per_block},
    IntField{"smem_bytes_per_sm", &DeviceFacts::smem_bytes_per_sm},
    IntField{"smem_bytes_per_block", &DeviceFacts::smem_bytes_per_block},
    IntField{"smem_bytes_per_block_optin", &DeviceFacts::smem_bytes_per_block_optin},
    IntField{"smem_bytes_reserved_per_block", &DeviceFacts::smem_bytes_reserved_per_block},
    IntField{"memory_clock_khz", &DeviceFacts::memory_clock_khz},
    IntField{"memory_bus_bits", &DeviceFacts::memory_bus_bits},
};

/// Dependent launches came with compute capability 9.0.
constexpr int kFirstWithDependentLaunch = 90;

template <class Number>
void read_number(std::string_view text, Number& number) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0) number = value;
}

}  // namespace

double peak_bandwidth_gbps(const DeviceFacts& facts) {
  return 2.0 * facts.memory_clock_khz * 1e3 * (facts.memory_bus_bits / 8.0) / 1e9;
}

std::string tuning_identity(const DeviceFacts& facts) {
  return fmt::format(
      "kind={};{}architecture={};compute_capability={};sm_count={};warp_threads={};max_threads_per_block={};"
      "max_threads_per_sm={};max_blocks_per_sm={};registers_per_sm={};registers_per_block={};smem_bytes_per_sm={};"
      "smem_bytes_per_block={};smem_bytes_per_block_optin={};smem_bytes_reserved_per_block={};l2_bytes={};"
      "memory_clock_khz={};memory_bus_bits={};",
      facts.kind, facts.memory_bus_bits > 0 ? "" : fmt::format("name={};", facts.name), facts.architecture,
      facts.compute_capability, facts.sm_count, facts.warp_threads, facts.max_threads_per_block,
      facts.max_threads_per_sm, facts.max_blocks_per_sm, facts.registers_per_sm, facts.registers_per_block,
      facts.smem_bytes_per_sm, facts.smem_bytes_per_block, facts.smem_bytes_per_block_optin,
      facts.smem_bytes_reserved_per_block, facts.l2_bytes, facts.memory_clock_khz, facts.memory_bus_bits);
}

DeviceFacts facts_of_identity(std::string_view identity, DeviceFacts facts) {
  while (!identity.empty()) {
    const std::string_view field = identity.substr(0, identity.find(';'));
    identity.remove_prefix(std::min(identity.size(), field.size() + 1));
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = field.substr(0, equals), value = field.substr(equals + 1);
    for (const IntField& known : kIntFields)
      if (key == known.key) read_number(value, facts.*known.member);
    if (key == "l2_bytes") read_number(value, facts.l2_bytes);
  }
  facts.sm_count = std::max(facts.sm_count, 1);
  facts.has_dependent_launch = facts.compute_capability >= kFirstWithDependentLaunch;
  if (facts.compute_capability > 0) facts.max_cluster_blocks = max_cluster_blocks(facts.compute_capability);
  return facts;
}

}  // namespace hone
