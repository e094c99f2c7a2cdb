// The facts that every benchmark prints about itself, and small statistics for its table.
#pragma once

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace hone::benchmarks {

/// The sample below which the share `q` of all lies; NaN of none.
inline double quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(samples.size() - 1) + 0.5);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

inline double median(std::vector<double> samples) { return quantile(std::move(samples), 0.5); }

/// NaN of none.
inline double geometric_mean(const std::vector<double>& ratios) {
  double sum = 0;
  for (double ratio : ratios) sum += std::log(ratio);
  return std::exp(sum / static_cast<double>(ratios.size()));
}

/// 10^9 bytes per second.
inline double gbps(double bytes, double us) { return bytes / us * 1e-3; }

/// "2026-11-21", UTC
inline std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

}  // namespace hone::benchmarks
