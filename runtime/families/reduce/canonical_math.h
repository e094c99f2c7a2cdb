// The exponential and the logarithm of reproducible results: IEEE operations alone, so that all devices agree.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

namespace hone::canonical {

/// ln 2 in two parts, the first of which has so few digits that its multiples are exact; how many terms of the series
/// reach the last digit; and where the exponential is 0.
template <class A>
struct Constants {
  static constexpr bool kIsFloat = std::is_same_v<A, float>;
  static constexpr A kLog2OfE = static_cast<A>(1.4426950408889634074L);
  static constexpr A kLn2High = static_cast<A>(kIsFloat ? 0x1.62e4p-1 : 0x1.62e42feep-1);
  static constexpr A kLn2Low = static_cast<A>(kIsFloat ? 0x1.7f7d1cp-20 : 0x1.a39ef35793c76p-33);
  static constexpr A kSqrt2 = static_cast<A>(kIsFloat ? 0x1.6a09e6p0 : 0x1.6a09e667f3bcdp0);
  static constexpr A kLowest = kIsFloat ? A(-104) : A(-746);
  static constexpr int kExponentialDegree = kIsFloat ? 7 : 13;
  static constexpr int kLogarithmDegree = kIsFloat ? 5 : 11;
};

/// exp(d) for d ≤ 0: 2^k · Σ r^j ÷ j!, where r = d − k·ln 2.
template <class A>
A exponential(A d) {
  using C = Constants<A>;
  if (std::isnan(d)) return d;
  if (d < C::kLowest) return A(0);
  static const auto reciprocals = [] {
    std::array<A, C::kExponentialDegree + 1> all{};
    double factorial = 1;  // exact up to 18!
    for (std::size_t j = 0; j < all.size(); factorial *= static_cast<double>(++j)) all[j] = A(1) / A(factorial);
    return all;
  }();
  const A k = std::rint(d * C::kLog2OfE);
  const A r = std::fma(-k, C::kLn2Low, std::fma(-k, C::kLn2High, d));
  A sum = reciprocals.back();
  for (std::size_t j = reciprocals.size() - 1; j-- > 0;) sum = std::fma(sum, r, reciprocals[j]);
  const int exponent = static_cast<int>(k), half = exponent >> 1;
  return (sum * std::ldexp(A(1), half)) * std::ldexp(A(1), exponent - half);
}

/// ln s for normal s > 0: k·ln 2 + 2·artanh(z), where s = 2^k·m, z = (m − 1) ÷ (m + 1).
template <class A>
A logarithm(A s) {
  using C = Constants<A>;
  if (!(s > 0) || std::isinf(s)) return s > 0 ? s : std::numeric_limits<A>::quiet_NaN();
  int exponent = 0;
  A m = 2 * std::frexp(s, &exponent);
  --exponent;
  if (m > C::kSqrt2) {
    m /= 2;
    ++exponent;
  }
  const A f = m - 1;
  const A z = f / (f + 2), w = z * z;
  A sum = A(2) / A(2 * C::kLogarithmDegree + 1);
  for (int j = C::kLogarithmDegree; j-- > 0;) sum = std::fma(sum, w, A(2) / A(2 * j + 1));
  const A k = static_cast<A>(exponent);
  return std::fma(k, C::kLn2High, std::fma(k, C::kLn2Low, z * sum));
}

}  // namespace hone::canonical
