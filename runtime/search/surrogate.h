// Surrogate: what candidates are expected to take, from the occupancy model and from how wrong it was about others.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include <hone/candidate.h>
#include <hone/device_facts.h>
#include <hone/policy.h>

#include "runtime/search/model.h"

namespace hone {

/// The occupancy model knows what all kernels have in common; what one kernel makes of a parameter shows in the times
/// of those candidates that have been measured. The logarithm of measured ÷ predicted is taken for a Gaussian process
/// over the parameters: ordinary kriging, whose correlation falls with the steps between two values of each parameter
/// (ParameterKind says how many) and with the ratio of the two grids (Rasmussen and Williams, Gaussian Processes for
/// Machine Learning, 2006, chapter 2; expected improvement by Jones, Schonlau and Welch, Journal of Global Optimization
/// 13, 1998). Pure.
class Surrogate {
 public:
  /// `space` must outlive it. `enqueue_us`: what enqueueing one launch takes this host; 0: what the model says.
  Surrogate(const ParameterSpace& space, const DeviceFacts& facts, double enqueue_us = 0);

  /// A candidate that may be asked about: its number, counted from 0.
  std::size_t add(const Candidate& candidate, const Prediction& prediction);

  /// Learns what one of them took. Times that are not positive are left out, and those that tell the host's pace alone.
  void observe(std::size_t point, double measured_us);

  /// Learns what a candidate took on a neighbouring problem, where the model is wrong in much the same way, and what
  /// the host takes to enqueue it there as here.
  void observe_nearby(const Candidate& candidate, double enqueue_us, double predicted_us, double measured_us);

  /// Returns what it should take: the prediction of the device's part, put right by what was observed; at least what
  /// the host takes.
  double expected_us(std::size_t point);

  /// By what share measuring it is expected to improve on `leader_us`, counting 0 for each chance that it does not.
  double expected_gain(std::size_t point, double leader_us);

  /// The standard deviation of what the model is wrong by, as a logarithm: 0.1 means 10 %.
  double error() const;

 private:
  struct Point {
    std::array<std::optional<double>, Policy::kMaxParameters> places{};  ///< of each parameter that exists: log2 of an
                                                                         ///< ordinal value, a categorical one itself
    double grid = 0;                                   ///< log2 of blocks per SM
    double log_us = 0;                                 ///< predicted for the device
    double enqueue_us = 0;
    std::vector<double> solved = {};  ///< L⁻¹ times its correlations with the observations, as far as it was asked for
  };
  struct Observation {
    std::size_t point;
    std::vector<double> row;  ///< of L, the Cholesky factor of the observations' correlations, diagonal included
    double residual;          ///< L⁻¹ times log(measured ÷ predicted)
    double one;               ///< L⁻¹ times 1
  };

  double correlation(const Point& a, const Point& b) const;
  double expected_log_us(std::size_t point);
  const std::vector<double>& solve(std::size_t point);
  void observe(std::size_t point, double measured_us, double noise);

  const ParameterSpace& space_;
  const int sm_count_;
  const double enqueue_share_;  ///< of what the model says
  std::vector<Point> points_;
  std::vector<Observation> observations_;
  double residuals_ones_ = 0, ones_ones_ = 0, residuals_residuals_ = 0;  ///< products of the solved vectors
};

}  // namespace hone
