// ModelError: how far the occupancy model has been off, and what that leaves possible.
#pragma once

#include <cstddef>
#include <vector>

namespace hone {

/// Collects what was predicted and what was measured in one tuning. Pure.
class ModelError {
 public:
  /// Times that are not positive are left out: their ratio says nothing.
  void add(double predicted_us, double measured_us);

  /// What a candidate of this prediction may take at best: the prediction times the ratio of measured to predicted that
  /// nineteen in twenty candidates exceeded. 0 (anything is possible) while fewer than kFewest are known, and while the
  /// model orders candidates hardly better than chance would (rank correlation below kLeastCorrelation).
  double optimistic_us(double predicted_us) const;

  /// Spearman's rank correlation of prediction and measurement; 0 for fewer than two.
  double rank_correlation() const;

  static constexpr std::size_t kFewest = 10;
  static constexpr double kLeastCorrelation = 0.6;

 private:
  std::vector<double> predicted_us_;
  std::vector<double> measured_us_;
  std::vector<double> ratios_;  ///< measured ÷ predicted, sorted
};

}  // namespace hone
