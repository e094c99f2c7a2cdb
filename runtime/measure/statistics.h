// Robust statistics of timing samples. Pure functions of numbers.
#pragma once

#include <span>

namespace hone {

/// The middle value, or the mean of the two middle ones. `samples` must not be empty.
double median(std::span<const double> samples);

/// Half the interquartile range: for a normal distribution 0.67 standard deviations, and blind to outliers. 0 for fewer
/// than two samples.
double half_interquartile_range(std::span<const double> samples);

/// A median with its spread.
struct Estimate {
  double median_us = 0;
  double spread_us = 0;
  int samples = 0;
};

Estimate estimate(std::span<const double> samples);

/// Whether `slower` may be as fast as `faster`: their medians differ by no more than twice the standard error of the
/// difference, taking spread ÷ √samples as the standard error of a median.
bool indistinguishable(const Estimate& faster, const Estimate& slower);

}  // namespace hone
