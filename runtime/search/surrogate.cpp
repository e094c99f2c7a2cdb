#include "runtime/search/surrogate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace hone {
namespace {

// Chosen by searching the recorded times of 94 problems all of whose candidates had been measured (reductions, rows,
// columns, softmax, transposes; H100 and H200, CUDA 13.0, 2026-11): winners 0.2 % behind the best in the mean, 2 % at
// worst, with one candidate in six measured. Correlations of 0.6 or 0.85 and half or twice the noise change neither by
// much.

/// Holds for candidates a step apart in one parameter; more than kMostSteps are no less alike. A parameter that one of
/// them does not have counts kAbsentSteps. (For these numbers the correlations of any candidates are positive
/// semidefinite; with one step for an absent parameter they are not.)
constexpr double kStepCorrelation = 0.8;
constexpr double kMostSteps = 3;
constexpr double kAbsentSteps = 1.5;

/// Holds for the same policy in grids of which one is twice the other.
constexpr double kGridCorrelation = 0.9;

/// Variance of what a measurement says, as a share of what the model is wrong by; and of one of a neighbouring problem.
constexpr double kNoise = 0.1;
constexpr double kNearbyNoise = 0.5;

/// The model is taken to be wrong by this much even where it has always been right.
constexpr double kLeastError = 0.01;

/// Grids beyond this are no different.
constexpr double kMostBlocksPerSm = 64;

double share_of_model(const DeviceFacts& facts, double enqueue_us) {
  const double by_the_model = model_constants(facts).enqueue_us;
  return enqueue_us > 0 && by_the_model > 0 ? enqueue_us / by_the_model : 1;
}

/// A normal variable is expected to stay below a bound by this, counting 0 where it does not; `lead`: of its mean.
double expected_lead(double lead, double deviation) {
  const double z = lead / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double chance = std::erfc(-z / std::numbers::sqrt2) / 2;
  return lead * chance + deviation * density;
}

}  // namespace

Surrogate::Surrogate(const ParameterSpace& space, const DeviceFacts& facts, double enqueue_us)
    : space_(space), sm_count_(facts.sm_count), enqueue_share_(share_of_model(facts, enqueue_us)) {}

std::size_t Surrogate::add(const Candidate& candidate, const Prediction& prediction) {
  Point point{.log_us = std::log(std::max(prediction.device_us, 1e-6)),
              .enqueue_us = enqueue_share_ * prediction.enqueue_us};
  for (std::size_t i = 0; i < space_.parameters().size(); ++i) {
    if (!space_.exists(i, candidate.policy)) continue;
    const double value = candidate.policy[static_cast<int>(i)];
    const bool is_ordinal = space_.parameters()[i].kind() == ParameterKind::ordinal;
    point.places[i] = is_ordinal ? std::log2(std::max(value, 0.5)) : value;
  }
  const double per_sm = static_cast<double>(std::max<std::int64_t>(candidate.geometry.max_blocks, 1)) / sm_count_;
  point.grid = std::log2(std::min(per_sm, kMostBlocksPerSm));
  points_.push_back(std::move(point));
  return points_.size() - 1;
}

double Surrogate::correlation(const Point& a, const Point& b) const {
  double steps = 0;
  for (std::size_t i = 0; i < space_.parameters().size(); ++i) {
    const std::optional<double>&x = a.places[i], &y = b.places[i];
    if (x.has_value() != y.has_value()) steps += kAbsentSteps;
    else if (x && space_.parameters()[i].kind() == ParameterKind::categorical) steps += *x != *y;
    else if (x) steps += std::min(std::abs(*x - *y), kMostSteps);
  }
  return std::pow(kStepCorrelation, steps) * std::pow(kGridCorrelation, std::abs(a.grid - b.grid));
}

/// Goes on where it was left: an observation adds a row to L and changes none.
const std::vector<double>& Surrogate::solve(std::size_t point) {
  std::vector<double>& solved = points_[point].solved;
  for (std::size_t i = solved.size(); i < observations_.size(); ++i) {
    const Observation& observation = observations_[i];
    double rest = correlation(points_[observation.point], points_[point]);
    for (std::size_t j = 0; j < i; ++j) rest -= observation.row[j] * solved[j];
    solved.push_back(rest / observation.row[i]);
  }
  return solved;
}

void Surrogate::observe(std::size_t point, double measured_us) { observe(point, measured_us, kNoise); }

void Surrogate::observe_nearby(const Candidate& candidate, double enqueue_us, double predicted_us,
                               double measured_us) {
  if (predicted_us > enqueue_us)
    observe(add(candidate, {.device_us = predicted_us, .enqueue_us = enqueue_us}), measured_us, kNearbyNoise);
}

void Surrogate::observe(std::size_t point, double measured_us, double noise) {
  if (measured_us <= points_[point].enqueue_us) return;
  Observation observation{.point = point,
                          .row = solve(point),
                          .residual = std::log(measured_us) - points_[point].log_us,
                          .one = 1};
  double variance = 1 + noise;
  for (std::size_t i = 0; i < observations_.size(); ++i) {
    const double factor = observation.row[i];
    variance -= factor * factor;
    observation.residual -= factor * observations_[i].residual;
    observation.one -= factor * observations_[i].one;
  }
  const double deviation =
      std::sqrt(std::max(variance, noise));  // below it by rounding alone: correlations are positive
  observation.row.push_back(deviation);
  observation.residual /= deviation;
  observation.one /= deviation;
  residuals_ones_ += observation.residual * observation.one;
  ones_ones_ += observation.one * observation.one;
  residuals_residuals_ += observation.residual * observation.residual;
  observations_.push_back(std::move(observation));
}

double Surrogate::expected_us(std::size_t point) {
  return std::max(std::exp(expected_log_us(point)), points_[point].enqueue_us);
}

double Surrogate::expected_log_us(std::size_t point) {
  double log_us = points_[point].log_us;
  if (observations_.empty()) return log_us;
  const double mean_residual = residuals_ones_ / ones_ones_;
  const std::vector<double>& solved = solve(point);
  log_us += mean_residual;
  for (std::size_t i = 0; i < solved.size(); ++i)
    log_us += solved[i] * (observations_[i].residual - mean_residual * observations_[i].one);
  return log_us;
}

double Surrogate::error() const {
  if (observations_.empty()) return kLeastError;
  const double squares = residuals_residuals_ - residuals_ones_ * residuals_ones_ / ones_ones_;
  return std::max(kLeastError, std::sqrt(std::max(squares, 0.0) / static_cast<double>(observations_.size())));
}

double Surrogate::expected_gain(std::size_t point, double leader_us) {
  double variance = 1;
  for (const double each : solve(point)) variance -= each * each;
  const double deviation = error() * std::sqrt(std::max(variance, 1e-9));
  const double expected = expected_log_us(point);
  const double enqueue_us = points_[point].enqueue_us;
  if (enqueue_us >= leader_us) return 0;
  // However fast the device is, what it gains beyond the host's pace is hidden.
  const double hidden = enqueue_us > 0 ? expected_lead(std::log(enqueue_us) - expected, deviation) : 0;
  return expected_lead(std::log(leader_us) - expected, deviation) - hidden;
}

}  // namespace hone
