// upper_median(): of a few numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace hone::tuner {

/// The upper of the two in the middle where their number is even; there must be one. Leaves them in another order.
inline double upper_median(std::span<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace hone::tuner
