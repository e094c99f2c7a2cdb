// spearman(): how well two orders agree.
#pragma once

#include <span>

namespace hone {

/// Spearman's rank correlation, equal values sharing their mean rank: 1 when both orders agree, −1 when they are
/// opposite. 0 for fewer than two values or when one side is constant. The spans must be equally long.
double spearman(std::span<const double> a, std::span<const double> b);

}  // namespace hone
