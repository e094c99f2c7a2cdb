// Why CUDA cannot be used on this machine, in a sentence.
#pragma once

#include <string>

#include <cuda_runtime_api.h>

namespace hone {

/// Explains a status of cudaGetDeviceCount(); "" for cudaSuccess. A pure function: `driver_version` is what
/// cudaDriverGetVersion() says (0: no driver), `toolkit_version` is CUDART_VERSION of the build.
std::string cuda_unavailable_because(cudaError_t status, int driver_version, int toolkit_version);

}  // namespace hone
