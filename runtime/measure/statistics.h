// Robust statistics of timing samples. Pure functions of numbers.
#pragma once

#include <cstddef>
#include <span>

namespace hone {

/// The middle value, or the mean of the two middle ones. `samples` must not be empty.
double median(std::span<const double> samples);

/// Half the interquartile range: for a normal distribution 0.67 standard deviations, and blind to outliers. 0 for fewer
/// than two samples.
double half_interquartile_range(std::span<const double> samples);

/// The value at `fraction` (0 … 1) of the way through the samples, interpolated. `samples` must not be empty.
double quantile(std::span<const double> samples, double fraction);

/// How sure an interval is to hold the median.
inline constexpr double kConfidence = 0.95;

/// Positions in sorted samples, both included.
struct RankInterval {
  std::size_t first = 0;
  std::size_t last = 0;

  bool operator==(const RankInterval&) const = default;
};

/// The order statistics that enclose the true median with at least kConfidence, whatever the distribution is: each
/// sample is below it with probability ½, so the number of those below is binomial (David and Nagaraja, "Order
/// Statistics", §7.1). Fewer than six samples cannot be that sure: then it is all of them. `samples` must be positive.
RankInterval median_ranks(std::size_t samples);

/// A median with its spread and the interval that holds it.
struct Estimate {
  double median_us = 0;
  double spread_us = 0;
  double low_us = 0;
  double high_us = 0;
  int samples = 0;
};

/// `resolution_us` is the smallest difference that the clock shows: the interval is at least that wide. `samples` must
/// not be empty.
Estimate estimate(std::span<const double> samples, double resolution_us = 0);

/// The result of comparing side-by-side samples.
enum class Comparison { faster, slower, tied };

/// Compares samples that were taken in turn, a[i] beside b[i], by the interval of the median of their differences:
/// what drifts hits both of a pair and cancels. `tied` when the interval, widened by the clock's resolution, holds 0,
/// and when there are fewer than kFewestPairs, which cannot be sure. Samples without a partner do not count.
inline constexpr std::size_t kFewestPairs = 6;
Comparison compare_pairs(std::span<const double> a, std::span<const double> b, double resolution_us = 0);

/// True where the interval of the median of their differences lies within ±`us`: more samples would say no more. False
/// when there are fewer than kFewestPairs.
bool differ_by_less(std::span<const double> a, std::span<const double> b, double us);

}  // namespace hone
