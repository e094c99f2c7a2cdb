#include <hone/sdk/known_gpus.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace hone {
namespace {

constexpr int kKiB = 1024;

/// Limits of an SM. Registers are 65536, and a block has up to 1024 threads everywhere.
struct Sm {
  int compute_capability;
  int threads;
  int blocks;
  int smem_kib;
};

constexpr std::array<Sm, 11> kSms{{
    {70, 2048, 32, 96},
    {75, 1024, 16, 64},
    {80, 2048, 32, 164},
    {86, 1536, 16, 100},
    {87, 1536, 16, 164},
    {89, 1536, 24, 100},
    {90, 2048, 32, 228},
    {100, 2048, 32, 228},
    {103, 2048, 32, 228},
    {120, 1536, 24, 100},
    {121, 1536, 24, 100},
}};

struct Gpu {
  std::string_view name;
  std::string_view driver_name;
  int compute_capability;
  int sm_count;
  int sm_mhz;
  int memory_mhz;
  int bus_bits;
  std::int64_t l2_kib;
  std::int64_t memory_mib;
  std::string_view source;
};

// Each source prints what the driver reports. That of the memory clock of the Orin is the clock of the memory
// controller; 3200 MHz is what 204.8 GB/s of the data sheet mean for 256 bits.
constexpr std::array<Gpu, 14> kGpus{{
    {"t4", "Tesla T4", 75, 40, 1590, 5001, 256, 4096, 15110,
     "deviceQuery in chiemon.github.io, 2024-12-25; NVIDIA T4 data sheet: 320 GB/s"},
    {"a100", "NVIDIA A100-SXM4-40GB", 80, 108, 1410, 1215, 5120, 40960, 40441,
     "deviceQuery in github.com/bottlerocket-os/bottlerocket/pull/3873; NVIDIA A100 data sheet: 1555 GB/s"},
    {"a100-80gb", "NVIDIA A100-SXM4-80GB", 80, 108, 1410, 1593, 5120, 40960, 81158,
     "NVIDIA A100 80GB data sheet: 2039 GB/s; all else as of the A100 with 40 GB"},
    {"a10", "NVIDIA A10", 86, 72, 1695, 6251, 384, 6144, 22516,
     "NVIDIA A10 data sheet: 600 GB/s, 31.2 TFLOPS (72 SMs at 1695 MHz); GA102 white paper: 6144 KB of L2"},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86, 82, 1695, 9751, 384, 6144, 24265,
     "NVIDIA Ampere GA102 GPU Architecture white paper: 82 SMs, 1695 MHz, 936 GB/s, 6144 KB of L2"},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 2520, 10501, 384, 73728, 24081,
     "NVIDIA Ada GPU Architecture white paper: 128 SMs, 2520 MHz, 1008 GB/s, 73728 KB of L2"},
    {"l40s", "NVIDIA L40S", 89, 142, 2520, 9001, 384, 98304, 45373,
     "NVIDIA L40S data sheet: 18176 cores, 91.6 TFLOPS, 864 GB/s; Ada white paper: AD102 has 98304 KB of L2"},
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 1980, 2619, 5120, 51200, 81079,
     "deviceQuery in github.com/thamada/nvidia-smi, nvsim/H100SXMx8_deviceQuery.py"},
    {"h100-pcie", "NVIDIA H100 PCIe", 90, 114, 1755, 1593, 5120, 51200, 81079,
     "NVIDIA H100 PCIe product brief: 114 SMs, 1755 MHz, 1593 MHz, 5120 bits, 50 MB of L2"},
    {"h200", "NVIDIA H200", 90, 132, 1980, 3201, 6144, 61440, 143156,
     "NVIDIA H200 data sheet: 4.8 TB/s; 132 SMs, 60 MiB of L2 as the driver reports them"},
    {"gh200", "NVIDIA GH200 480GB", 90, 132, 1980, 2619, 6144, 61440, 97280,
     "github.com/mredenti/PowerCapping, OpenCL_benchmark.md: 132 SMs, 1980 MHz; NVIDIA GH200 data sheet: 4 TB/s, "
     "96 GB"},
    {"b200", "NVIDIA B200", 100, 148, 1965, 3996, 7680, 129536, 182630,
     "github.com/pytorch/ao/pull/4002: 148 SMs, 3996 MHz, 7680 bits, 126.5 MiB of L2"},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 120, 170, 2407, 14001, 512, 98304, 32120,
     "deviceQuery in github.com/NVIDIA/nccl/issues/1637; NVIDIA RTX Blackwell white paper: 2407 MHz, 1792 GB/s"},
    {"orin", "Orin", 87, 16, 1300, 3200, 256, 4096, 62841,
     "NVIDIA Jetson AGX Orin 64GB data sheet: 16 SMs, 1300 MHz, 256 bits of LPDDR5, 204.8 GB/s, 4 MB of L2"},
}};

DeviceFacts facts_of(const Sm& sm) {
  DeviceFacts facts;
  facts.kind = "cuda";
  facts.architecture = fmt::format("sm_{}", sm.compute_capability);
  facts.compute_capability = sm.compute_capability;
  facts.sm_count = 0;
  facts.max_threads_per_sm = sm.threads;
  facts.max_blocks_per_sm = sm.blocks;
  // Since compute capability 8.0, 1 KiB of every block is the system's.
  facts.smem_bytes_reserved_per_block = sm.compute_capability >= 80 ? kKiB : 0;
  facts.smem_bytes_per_sm = sm.smem_kib * kKiB;
  facts.smem_bytes_per_block_optin = facts.smem_bytes_per_sm - facts.smem_bytes_reserved_per_block;
  facts.max_grid_x = std::numeric_limits<std::int32_t>::max();
  facts.max_grid_y = 65535;
  facts.max_grid_z = 65535;
  facts.has_dependent_launch = has_dependent_launch(sm.compute_capability);
  facts.max_cluster_blocks = max_cluster_blocks(sm.compute_capability);
  return facts;
}

const Sm* find_sm(int compute_capability) {
  const auto found = std::find_if(kSms.begin(), kSms.end(),
                                  [&](const Sm& sm) { return sm.compute_capability == compute_capability; });
  return found == kSms.end() ? nullptr : &*found;
}

KnownGpu known_gpu(const Gpu& gpu) {
  DeviceFacts facts = facts_of(*find_sm(gpu.compute_capability));
  facts.name = gpu.driver_name;
  facts.sm_count = gpu.sm_count;
  facts.sm_clock_khz = gpu.sm_mhz * 1000;
  facts.memory_clock_khz = gpu.memory_mhz * 1000;
  facts.memory_bus_bits = gpu.bus_bits;
  facts.l2_bytes = gpu.l2_kib * kKiB;
  facts.memory_bytes = gpu.memory_mib * kKiB * kKiB;
  return {.name = gpu.name, .facts = std::move(facts), .source = gpu.source};
}

bool equals_without_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char left, char right) { return lower(left) == lower(right); });
}

}  // namespace

std::span<const KnownGpu> known_gpus() {
  static const std::vector<KnownGpu>& gpus = *[] {  // never destroyed: a static Session may tune after main()
    auto* const all = new std::vector<KnownGpu>;
    for (const Gpu& gpu : kGpus) all->push_back(known_gpu(gpu));
    return all;
  }();
  return gpus;
}

const KnownGpu* find_known_gpu(std::string_view name) {
  for (const KnownGpu& gpu : known_gpus())
    if (equals_without_case(gpu.name, name) || equals_without_case(gpu.facts.name, name)) return &gpu;
  return nullptr;
}

std::optional<DeviceFacts> architecture_facts(std::string_view architecture) {
  if (!architecture.starts_with("sm_")) return std::nullopt;
  std::string_view digits = architecture.substr(3);
  if (digits.ends_with('a') || digits.ends_with('f')) digits.remove_suffix(1);
  int compute_capability = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), compute_capability);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  const Sm* const sm = find_sm(compute_capability);
  if (sm == nullptr) return std::nullopt;
  DeviceFacts facts = facts_of(*sm);
  facts.architecture = architecture;
  return facts;
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (const Sm& sm : kSms) names.push_back(fmt::format("sm_{}", sm.compute_capability));
  return names;
}

bool has_dependent_launch(int compute_capability) { return compute_capability >= 90; }

int max_cluster_blocks(int compute_capability) {
  if (compute_capability < 90) return 0;
  return compute_capability < 110 ? 16 : 8;
}

}  // namespace hone
