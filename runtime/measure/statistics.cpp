#include "runtime/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <hone/sdk/rank_correlation.h>

namespace hone {
namespace {

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double quantile_of_sorted(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

std::vector<double> differences_of(std::span<const double> a, std::span<const double> b) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) differences.push_back(a[i] - b[i]);
  return differences;
}

/// Ranks from 1, equal values sharing the mean of theirs.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = (static_cast<double>(begin + end) + 1) / 2;
    begin = end;
  }
  return ranks;
}

}  // namespace

double median(std::span<const double> samples) { return quantile(samples, 0.5); }

double quantile(std::span<const double> samples, double fraction) {
  return quantile_of_sorted(sorted_copy(samples), fraction);
}

double half_interquartile_range(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const std::vector<double> sorted = sorted_copy(samples);
  return (quantile_of_sorted(sorted, 0.75) - quantile_of_sorted(sorted, 0.25)) / 2;
}

RankInterval median_ranks(std::size_t samples) {
  // The most that may be cut off at each end: P(at most `cut` of n samples are below the median) ≤ (1 − confidence) ÷
  // 2. In logarithms, since 2^−n underflows.
  const auto n = static_cast<double>(samples);
  const auto log_share = [&](double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0);
  };
  double tail = std::exp(log_share(0));
  std::size_t cut = 0;
  while (2 * (cut + 1) < samples) {
    tail += std::exp(log_share(static_cast<double>(cut + 1)));
    if (tail > (1 - kConfidence) / 2) break;
    ++cut;
  }
  return {.first = cut, .last = samples - 1 - cut};
}

Estimate estimate(std::span<const double> samples, double resolution_us) {
  const std::vector<double> sorted = sorted_copy(samples);
  const RankInterval ranks = median_ranks(sorted.size());
  const double middle = quantile_of_sorted(sorted, 0.5);
  return {.median_us = middle,
          .spread_us = half_interquartile_range(samples),
          .low_us = std::min(sorted[ranks.first], middle - resolution_us / 2),
          .high_us = std::max(sorted[ranks.last], middle + resolution_us / 2),
          .samples = static_cast<int>(samples.size())};
}

Comparison compare_pairs(std::span<const double> a, std::span<const double> b, double resolution_us) {
  const std::vector<double> differences = differences_of(a, b);
  if (differences.size() < kFewestPairs) return Comparison::tied;
  const Estimate difference = estimate(differences, resolution_us);
  if (difference.high_us < 0) return Comparison::faster;
  return difference.low_us > 0 ? Comparison::slower : Comparison::tied;
}

bool differ_by_less(std::span<const double> a, std::span<const double> b, double us) {
  const std::vector<double> differences = differences_of(a, b);
  if (differences.size() < kFewestPairs) return false;
  const Estimate difference = estimate(differences);
  return -us < difference.low_us && difference.high_us < us;
}

double spearman(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return 0;
  const std::vector<double> ranks_a = ranks_of(a);
  const std::vector<double> ranks_b = ranks_of(b);
  const double mean_rank = (static_cast<double>(a.size()) + 1) / 2;
  double covariance = 0;
  double variance_a = 0;
  double variance_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    covariance += (ranks_a[i] - mean_rank) * (ranks_b[i] - mean_rank);
    variance_a += (ranks_a[i] - mean_rank) * (ranks_a[i] - mean_rank);
    variance_b += (ranks_b[i] - mean_rank) * (ranks_b[i] - mean_rank);
  }
  return variance_a > 0 && variance_b > 0 ? covariance / std::sqrt(variance_a * variance_b) : 0;
}

}  // namespace hone
