// CanonicalPowers: the weights of reproducible softmax, p · 2^n of scale · x (docs/numerics.md), in host memory.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>

#include "kernel_templates/canonical_softmax_arguments.h"

namespace hone::canonical {

/// log₂ e in two parts; the powers of two that sums are relative to, and for which largest exponents; how small an
/// exponent counts; by how many powers of two weights are lifted; and the largest scaled element that is exact enough.
template <class A>
struct PowerConstants {
  static constexpr bool kIsFloat = std::is_same_v<A, float>;
  static constexpr A kLog2OfE = static_cast<A>(kIsFloat ? 0x1.715476p+0 : 0x1.71547652b82fep+0);
  static constexpr A kLog2OfELow = static_cast<A>(kIsFloat ? 0x1.4ae0cp-26 : 0x1.777d0ffda0d24p-56);
  static constexpr int kWindow = kIsFloat ? 64 : 512, kCenter = kIsFloat ? 12 : 128;
  static constexpr int kLowest = kIsFloat ? 172 : 1204, kLift = kIsFloat ? 48 : 184;
  static constexpr A kMost = static_cast<A>(kIsFloat ? 0x1p20 : 0x1p40);
};

/// The coefficients of 2^f: in f32 of the polynomial 1 + f · … of degree 6 or 4 that is nearest to it, in f64 of its
/// series.
inline std::span<const float> power_coefficients(float, WeightPrecision precision) {
  static constexpr std::array<float, 7> kAll{
      1, 0x1.62e432p-1f, 0x1.ebfbe4p-3f, 0x1.c6ad88p-5f, 0x1.3b26f2p-7f, 0x1.5fcb7ap-10f, 0x1.462706p-13f};
  static constexpr std::array<float, 5> kFew{1, 0x1.62e12cp-1f, 0x1.ec0374p-3f, 0x1.c9fc8p-5f, 0x1.3a0394p-7f};
  if (precision == WeightPrecision::reduced) return kFew;
  return kAll;
}
inline std::span<const double> power_coefficients(double, WeightPrecision) {
  static const auto all = [] {
    std::array<double, 14> series{};
    double power = 1, factorial = 1;
    for (std::size_t j = 0; j < series.size(); power *= 0x1.62e42fefa39efp-1, factorial *= static_cast<double>(++j))
      series[j] = power / factorial;
    return series;
  }();
  return all;
}

/// The weights of a row whose largest product with the factor, which is twice the scale, is that of `origin`.
template <class A>
class CanonicalPowers {
 public:
  CanonicalPowers() = default;
  CanonicalPowers(A origin, A factor, WeightPrecision precision) : precision_(precision) {
    int exponent = 0;
    const A half = std::frexp(std::fabs(factor), &exponent);
    const auto power = [&](int e) { return std::copysign(std::ldexp(A(1), e), factor); };
    high_ = half * C::kLog2OfE;
    low_ = std::fma(half, C::kLog2OfELow, std::fma(half, C::kLog2OfE, -high_));
    scale_ = power(exponent - 1);
    if (const A product = origin * scale_; std::fabs(product) <= C::kMost) {
      level_ = C::kWindow * nearest(nearest(product, high_) - C::kCenter, A(1) / C::kWindow);
    } else {
      scale_ = power(std::min(exponent - 1, std::numeric_limits<A>::max_exponent - 2 - exponent_of(origin)));
      shift_ = -(origin * scale_);
    }
    lowest_ = (level_ - C::kLowest) * (1 / high_);
  }

  /// 2^(kLift − level) · exp(½ factor · x).
  A operator()(A x) const {
    const A z = std::max(lowest_, std::fma(x, scale_, shift_)), n = nearest(z, high_);  // not a NaN
    A f = std::fma(z, high_, -n), sum = 0;
    if (precision_ == WeightPrecision::full) f = std::fma(z, low_, f);
    const auto coefficients = power_coefficients(A(), precision_);
    for (std::size_t j = coefficients.size(); j-- > 0;) sum = std::fma(sum, f, coefficients[j]);
    return std::ldexp(sum, static_cast<int>(n - level_) + C::kLift);
  }

 private:
  using C = PowerConstants<A>;

  /// The integer nearest to a product, rounded once.
  static A nearest(A a, A b) {
    const A rounder = std::ldexp(A(1.5), std::numeric_limits<A>::digits - 1);
    return std::fma(a, b, rounder) - rounder;
  }
  /// At least that above which products of powers of two do not overflow.
  static int exponent_of(A x) { return std::max(-1, std::ilogb(x)); }

  template <class B>
  friend GuessedFactors<B> guessed_factors(B factor);

  A high_ = 0, low_ = 0, scale_ = 0, shift_ = 0, lowest_ = 0, level_ = 0;
  WeightPrecision precision_ = WeightPrecision::full;
};

/// Kernels make weights relative to 1 with these. Elements are negated if the factor is, and its power of two is a part
/// of all three.
template <class A>
GuessedFactors<A> guessed_factors(A factor) {
  constexpr A kNan = std::numeric_limits<A>::quiet_NaN();
  if (!(std::fabs(factor) >= A(0x1p-60) && std::fabs(factor) <= A(0x1p60))) return {kNan, kNan, kNan};
  const CanonicalPowers<A> powers(0, factor, WeightPrecision::full);  // whose constants are those of any precision
  const A scale = std::fabs(powers.scale_);
  return {powers.high_ * scale, powers.low_ * scale, powers.lowest_ / scale};
}

}  // namespace hone::canonical
