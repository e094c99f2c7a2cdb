// gpu_resources(): what a GPU's compiler makes of a kernel, without the GPU.
#pragma once

#include <cstddef>
#include <string_view>

#include <hone/device_facts.h>
#include <hone/kernel.h>

namespace hone {

/// Compiles `unit` with NVRTC for an architecture like "sm_90" and reads from the cubin what its first entry needs
/// (extern "C" or not; no template). Throws Error: unsupported when there is no NVRTC or it does not know the
/// architecture; compile_failed with the log; not_found when the unit has no such kernel. Thread-safe.
Resources gpu_resources(const Unit& unit, std::string_view architecture);

/// How many blocks fit on one SM at once, from facts alone; 0 when none does.
int gpu_resident_blocks(const DeviceFacts& facts, const Resources& resources, int block_threads,
                        std::size_t dynamic_smem_bytes);

}  // namespace hone
