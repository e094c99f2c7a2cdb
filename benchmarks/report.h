// What every benchmark says about itself, and small statistics for its table.
#pragma once

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace hone::benchmarks {

inline double median(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// "13.0"
inline std::string cuda_version() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// "2026-11-21", UTC
inline std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

}  // namespace hone::benchmarks
