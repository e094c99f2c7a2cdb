// gpu_resources(): the resources of a kernel on a GPU that need not be present.
#pragma once

#include <string_view>

#include <hone/kernel.h>

namespace hone {

/// Compiles `unit` with NVRTC for an architecture like "sm_90", and reads the resources of its first entry from the
/// cubin. Throws Error: unsupported if there is no NVRTC or it does not know the architecture, compile_failed with the
/// log, not_found if the unit has no such kernel. Thread-safe.
Resources gpu_resources(const Unit& unit, std::string_view architecture);

}  // namespace hone
