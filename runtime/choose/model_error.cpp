#include "runtime/choose/model_error.h"

#include <algorithm>

#include <hone/rank_correlation.h>

#include "runtime/measure/statistics.h"

namespace hone {
namespace {

constexpr double kExceptions = 0.05;

}  // namespace

void ModelError::add(double predicted_us, double measured_us) {
  if (predicted_us <= 0 || measured_us <= 0) return;
  predicted_us_.push_back(predicted_us);
  measured_us_.push_back(measured_us);
  const double ratio = measured_us / predicted_us;
  ratios_.insert(std::upper_bound(ratios_.begin(), ratios_.end(), ratio), ratio);
}

double ModelError::optimistic_us(double predicted_us) const {
  if (ratios_.size() < kFewest || rank_correlation() < kLeastCorrelation) return 0;
  return predicted_us * quantile(ratios_, kExceptions);
}

double ModelError::rank_correlation() const { return spearman(predicted_us_, measured_us_); }

}  // namespace hone
