// cuda_version(): the CUDA runtime that a benchmark was linked with.
#pragma once

#include <string>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace hone::benchmarks {

/// "13.0"
inline std::string cuda_version() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace hone::benchmarks
