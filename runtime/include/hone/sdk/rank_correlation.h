// spearman(): the rank correlation of two series.
#pragma once

#include <span>

namespace hone {

/// Spearman's rank correlation: 1 if both series have the same order, −1 if they have opposite orders. Equal values
/// share their mean rank. 0 for fewer than two values, or if one series is constant. The spans must have equal lengths.
double spearman(std::span<const double> a, std::span<const double> b);

}  // namespace hone
