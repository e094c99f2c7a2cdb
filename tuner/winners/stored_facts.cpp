#include "tuner/winners/stored_facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace hone::tuner {
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

DeviceFacts stored_facts(const cache::DeviceRecord& device) {
  DeviceFacts facts;
  facts.kind = device.kind;
  facts.name = device.name;
  facts.architecture = device.architecture;
  facts.sm_count = device.sm_count;
  facts.max_threads_per_sm = device.max_threads_per_sm;
  for (std::string_view left = device.identity; !left.empty();) {
    const std::string_view field = left.substr(0, left.find(';'));
    left.remove_prefix(std::min(left.size(), field.size() + 1));
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = field.substr(0, equals), value = field.substr(equals + 1);
    for (const IntField& known : kIntFields)
      if (key == known.key) read_number(value, facts.*known.member);
    if (key == "l2_bytes") read_number(value, facts.l2_bytes);
  }
  if (facts.sm_count < 1) facts.sm_count = 1;
  facts.has_dependent_launch = facts.compute_capability >= kFirstWithDependentLaunch;
  return facts;
}

}  // namespace hone::tuner
