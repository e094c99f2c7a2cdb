#include "runtime/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hone {
namespace {

/// The value at `fraction` of the way through sorted samples, interpolated between neighbours.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

double median(std::span<const double> samples) { return quantile(sorted_copy(samples), 0.5); }

double half_interquartile_range(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const std::vector<double> sorted = sorted_copy(samples);
  return (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 2;
}

Estimate estimate(std::span<const double> samples) {
  return {.median_us = median(samples),
          .spread_us = half_interquartile_range(samples),
          .samples = static_cast<int>(samples.size())};
}

bool indistinguishable(const Estimate& faster, const Estimate& slower) {
  const double error =
      std::hypot(faster.spread_us / std::sqrt(faster.samples), slower.spread_us / std::sqrt(slower.samples));
  return slower.median_us - faster.median_us <= 2 * error;
}

}  // namespace hone
