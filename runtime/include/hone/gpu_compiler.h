// compile_for_gpu(): a unit's cubin for a GPU that need not be there.
#pragma once

#include <string_view>

#include <hone/kernel.h>

namespace hone {

/// Compiles with the NVRTC that the environment names or the machine has, for an architecture like "sm_90". The library
/// is looked for and opened by the first call. Thread-safe. Throws Error: compile_failed with the compiler's log;
/// unsupported when there is no NVRTC, when it does not know the architecture, or when this build of Hone has no CUDA
/// support.
Binary compile_for_gpu(const Unit& unit, std::string_view architecture);

}  // namespace hone
