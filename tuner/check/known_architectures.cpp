#include "tuner/check/known_architectures.h"

#include <array>

namespace hone::tuner {
namespace {

/// Per SM; registers are 65536 and blocks have up to 1024 threads everywhere.
struct Architecture {
  std::string_view name;
  int compute_capability;
  int threads;
  int blocks;
  int smem_kib;
  int smem_kib_per_block;
};

constexpr std::array<Architecture, 12> kArchitectures{{
    {"sm_75", 75, 1024, 16, 64, 64},
    {"sm_80", 80, 2048, 32, 164, 163},
    {"sm_86", 86, 1536, 16, 100, 99},
    {"sm_87", 87, 1536, 16, 164, 163},
    {"sm_89", 89, 1536, 24, 100, 99},
    {"sm_90", 90, 2048, 32, 228, 227},
    {"sm_90a", 90, 2048, 32, 228, 227},
    {"sm_100", 100, 2048, 32, 228, 227},
    {"sm_100a", 100, 2048, 32, 228, 227},
    {"sm_103", 103, 2048, 32, 228, 227},
    {"sm_120", 120, 1536, 24, 100, 99},
    {"sm_121", 121, 1536, 24, 100, 99},
}};

}  // namespace

std::optional<DeviceFacts> known_architecture(std::string_view architecture) {
  for (const Architecture& known : kArchitectures) {
    if (known.name != architecture) continue;
    DeviceFacts facts;
    facts.kind = "cuda";
    facts.architecture = known.name;
    facts.compute_capability = known.compute_capability;
    facts.max_threads_per_sm = known.threads;
    facts.max_blocks_per_sm = known.blocks;
    facts.smem_bytes_per_sm = known.smem_kib * 1024;
    facts.smem_bytes_per_block_optin = known.smem_kib_per_block * 1024;
    facts.smem_bytes_reserved_per_block = known.compute_capability >= 80 ? 1024 : 0;
    return facts;
  }
  return std::nullopt;
}

std::string known_architecture_names() {
  std::string names;
  for (const Architecture& known : kArchitectures) names.append(names.empty() ? "" : ", ").append(known.name);
  return names;
}

}  // namespace hone::tuner
