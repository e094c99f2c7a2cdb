// The exponential and the logarithm of reproducible results: IEEE operations alone, so that all devices agree.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>

namespace hone::canonical {

/// ln 2 in two parts, the first of which has so few digits that its multiples are exact; where the exponential is 0,
/// and where it is not subnormal yet; how far from 0 the largest element of a sum that is relative to 1 may be; how
/// many terms of the series for the logarithm reach the last digit.
template <class A>
struct Constants {
  static constexpr bool kIsFloat = std::is_same_v<A, float>;
  static constexpr A kLog2OfE = static_cast<A>(1.4426950408889634074L);
  static constexpr A kLn2High = static_cast<A>(kIsFloat ? 0x1.62e4p-1 : 0x1.62e42feep-1);
  static constexpr A kLn2Low = static_cast<A>(kIsFloat ? 0x1.7f7d1cp-20 : 0x1.a39ef35793c76p-33);
  static constexpr A kSqrt2 = static_cast<A>(kIsFloat ? 0x1.6a09e6p0 : 0x1.6a09e667f3bcdp0);
  static constexpr A kLowest = kIsFloat ? A(-104) : A(-746);
  static constexpr A kLowestNormal = kIsFloat ? A(-87) : A(-708);
  static constexpr A kMostNear = kIsFloat ? A(32) : A(256);
  static constexpr int kLogarithmDegree = kIsFloat ? 5 : 11;
};

/// The coefficients of the exponential: in f32 of the polynomial 1 + r + … that is nearest to it, in f64 of its series.
inline std::span<const float> exponential_coefficients(float) {
  static constexpr std::array<float, 7> kAll{1,           1,           0x1.fffffcp-2f,  0x1.555492p-3f,
                                             0x1.5558aap-5f, 0x1.12396cp-7f, 0x1.6a5232p-10f};
  return kAll;
}
inline std::span<const double> exponential_coefficients(double) {
  static const auto all = [] {
    std::array<double, 14> inverse_factorials{};
    double factorial = 1;  // exact up to 18!
    for (std::size_t j = 0; j < inverse_factorials.size(); factorial *= static_cast<double>(++j))
      inverse_factorials[j] = 1 / factorial;
    return inverse_factorials;
  }();
  return all;
}

/// 2^k · Σ cⱼ·r^j, where r = x − k·ln 2 and x is d, or `lowest` if d is below it or a NaN.
template <class A>
A exponential_from(A lowest, A d) {
  using C = Constants<A>;
  const A x = d > lowest ? d : lowest;
  const A rounder = std::ldexp(A(1.5), std::numeric_limits<A>::digits - 1);
  const A k = std::fma(x, C::kLog2OfE, rounder) - rounder;
  const A r = std::fma(-k, C::kLn2Low, std::fma(-k, C::kLn2High, x));
  A sum = 0;
  const auto coefficients = exponential_coefficients(A());
  for (std::size_t j = coefficients.size(); j-- > 0;) sum = std::fma(sum, r, coefficients[j]);
  return std::ldexp(sum, static_cast<int>(k));
}
/// exp(d) of d ≤ 0, 0 where that is below the subnormals.
template <class A>
A exponential(A d) { return std::isnan(d) ? d : exponential_from(Constants<A>::kLowest, d); }
/// exp(x) of x ≤ kMostNear, which is never subnormal, nor 0 or NaN.
template <class A>
A near_exponential(A x) { return exponential_from(Constants<A>::kLowestNormal, x); }

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
