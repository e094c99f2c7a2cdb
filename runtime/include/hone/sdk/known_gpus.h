// known_gpus(): the facts of GPUs that need not be present, and what all GPUs of an architecture have in common.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device_facts.h>

namespace hone {

/// A GPU whose facts are public.
struct KnownGpu {
  std::string_view name;    ///< as commands take it: "h100"
  DeviceFacts facts;        ///< as the driver reports them; `driver` is empty
  std::string_view source;  ///< where SMs, clocks, caches and bus come from
};

/// Today's GPUs, from the oldest architecture to the newest. Two of one product differ in their memory size, which
/// depends on the driver, and may differ in their clocks: where `hone devices --json` can be run, its facts are better.
std::span<const KnownGpu> known_gpus();

/// The GPU of that name ("h100"), or of the name that the driver gives it ("NVIDIA H100 80GB HBM3"); letter case does
/// not count. nullptr if there is none.
const KnownGpu* find_known_gpu(std::string_view name);

/// The limits that all GPUs of an architecture like "sm_90" or "sm_90a" share, by the table "Technical Specifications
/// per Compute Capability" of the CUDA C++ Programming Guide. SMs, clocks, caches and memory are 0. nullopt: not known.
std::optional<DeviceFacts> architecture_facts(std::string_view architecture);

/// "sm_75", "sm_80", …: the architectures that architecture_facts() knows, without suffixes.
std::vector<std::string> known_architectures();

/// Programmatic dependent launch exists from compute capability 9.0 on.
bool has_dependent_launch(int compute_capability);

/// The most blocks of a thread-block cluster; 0: no clusters. CUDA C++ Programming Guide, "Thread Block Clusters": 8
/// blocks are portable; the data-centre GPUs allow 16, opted in.
int max_cluster_blocks(int compute_capability);

}  // namespace hone
