// Exponentials for reproducible softmax as p · 2^n, where n is the integer nearest to scale · x · log₂ e. Neither
// depends on other elements of a row, and sums are relative to one power of two for a wide range of maxima: a row can
// be summed before its largest element is known (docs/numerics.md).
#pragma once

#include "canonical_exponentials.cuh"
#include "canonical_softmax_arguments.h"

namespace hone {

/// 2^f for |f| ≤ ½, within 2^-27.5: the polynomial 1 + f · … of rounded coefficients whose largest error is the least.
struct PowerOfDegree6 {
  static constexpr unsigned kDegree = 6;
  static constexpr float kAll[] = {
      1, 0x1.62e432p-1f, 0x1.ebfbe4p-3f, 0x1.c6ad88p-5f, 0x1.3b26f2p-7f, 0x1.5fcb7ap-10f, 0x1.462706p-13f};
  template <class Acc, unsigned kPower> static constexpr Acc kOf = kAll[kPower];
};
/// The same, within 2^-18.4.
struct PowerOfDegree4 {
  static constexpr unsigned kDegree = 4;
  static constexpr float kAll[] = {1, 0x1.62e12cp-1f, 0x1.ec0374p-3f, 0x1.c9fc8p-5f, 0x1.3a0394p-7f};
  template <class Acc, unsigned kPower> static constexpr Acc kOf = kAll[kPower];
};
/// The series, in f64.
struct PowersOfLn2 {
  static constexpr unsigned kDegree = 13;
  static __device__ constexpr double power(unsigned n) { return n == 0 ? 1 : power(n - 1) * 0x1.62e42fefa39efp-1; }
  template <class Acc, unsigned kPower>
  static constexpr Acc kOf = power(kPower) / InverseFactorials::factorial(kPower);
};

/// log₂ e in two parts. Sums are relative to 2^level, level a multiple of kWindow, for all rows whose largest n is at
/// most kWindow ÷ 2 away from level + kCenter. Exponents below level − kLowest count as that. What is lifted by 2^kLift
/// is never subnormal, and sums of 2^34 do not overflow. Scaled elements up to kMost are as exact as the scale.
template <class Acc>
struct PowerMath;
template <>
struct PowerMath<float> {
  static constexpr float kLog2OfE = 0x1.715476p+0f, kLog2OfELow = 0x1.4ae0cp-26f;
  static constexpr float kWindow = 64, kCenter = 12, kLowest = 172, kLift = 48, kMost = 0x1p20f, kRounder = 0x1.8p23f;
  template <WeightPrecision kPrecision>
  using Power = typename Select<kPrecision == WeightPrecision::full, PowerOfDegree6, PowerOfDegree4>::type;
};
template <>
struct PowerMath<double> {
  static constexpr double kLog2OfE = 0x1.71547652b82fep+0, kLog2OfELow = 0x1.777d0ffda0d24p-56;
  static constexpr double kWindow = 512, kCenter = 128, kLowest = 1204, kLift = 184, kMost = 0x1p40;
  static constexpr double kRounder = 0x1.8p52;
  template <WeightPrecision>
  using Power = PowersOfLn2;
};

/// 2^n · 2^f, where n + f = z · (high + low), or z · high in reduced precision; the rounder's low bits are what n is
/// lifted by.
template <WeightPrecision kPrecision, class Acc>
__device__ Acc lifted_power(Acc z, Acc high, Acc low, Acc rounder) {
  using Math = CanonicalMath<Acc>;
  using Bits = typename Math::Bits;
  const Acc rounded = fma(z, high, rounder);
  const Acc n = rounded_sum(rounded, -rounder);
  Acc f = fma(z, high, -n);
  if constexpr (kPrecision == WeightPrecision::full) f = fma(z, low, f);
  using Power = typename PowerMath<Acc>::template Power<kPrecision>;
  const Acc p = horner<Power, Power::kDegree>(f);
  return Math::of_bits(static_cast<Bits>(Math::bits(p)) + (static_cast<Bits>(Math::bits(rounded)) << Math::kMantissa));
}

/// The weights of elements of a row: 2^(kLift − level) · exp(½ factor · x).
template <class Acc, WeightPrecision kPrecision>
struct Powers {
  using Math = CanonicalMath<Acc>;
  using Integer = decltype(Math::bits(Acc()));
  static constexpr bool kTurnsElements = false;
  static constexpr int kMantissa = Math::kMantissa, kBias = Math::kBias;

  Acc high, low;  ///< half the digits of the factor, times log₂ e
  Acc inverse;    ///< of high
  Acc scale, shift;  ///< z = scale · x + shift; the scale is a power of two, or one negated
  Acc rounder, lowest;
  Acc level;

  Powers() = default;
  /// Relative to 1. No maximum is known.
  __device__ explicit Powers(Acc factor) : shift(0) {
    const bool is_tiny = fabs(factor) < Acc(0x1p-60);
    const Integer bits = Math::bits(is_tiny ? rounded_product(factor, Acc(0x1p64)) : factor);
    constexpr Integer kDigits = (Integer(1) << kMantissa) - 1;
    const Acc half = Math::of_bits((bits & kDigits) | Integer(kBias - 1) << kMantissa);
    const Acc power = Math::of_bits(bits & ~kDigits);
    scale = is_tiny ? rounded_product(power, Acc(0x1p-64)) : power;
    high = rounded_product(half, PowerMath<Acc>::kLog2OfE);
    low = fma(half, PowerMath<Acc>::kLog2OfELow, fma(half, PowerMath<Acc>::kLog2OfE, -high));
    inverse = Acc(1) / high;
    go_to(Acc(0));
  }
  /// Relative to the power of two for rows whose largest product with the factor is that of `origin`; to the origin
  /// itself, if it is so large that its exponent is not exact.
  __device__ Powers(Acc origin, Acc factor) : Powers(factor) {
    const Acc product = rounded_product(origin, scale);
    if (fabs(product) <= PowerMath<Acc>::kMost) go_to(level_of(product));
    else shift_by(origin);
  }

  /// True if this is what rows with any largest element are summed with before that is known.
  __device__ bool is_relative_to_1() const { return level == Acc(0) && shift == Acc(0); }

  __device__ Acc operator()(Acc x) const {
    return lifted_power<kPrecision>(larger<true>(fma(x, scale, shift), lowest), high, low, rounder);
  }
  template <class Packs>
  __device__ void turn(Packs&) const {}

 private:
  static __device__ Acc rounded_to_integer(Acc product, Acc digits) {
    return rounded_sum(fma(product, digits, PowerMath<Acc>::kRounder), -PowerMath<Acc>::kRounder);
  }
  __device__ Acc level_of(Acc product) const {
    const Acc above = rounded_sum(rounded_to_integer(product, high), -PowerMath<Acc>::kCenter);
    return rounded_product(rounded_to_integer(above, Acc(1) / PowerMath<Acc>::kWindow), PowerMath<Acc>::kWindow);
  }
  __device__ void go_to(Acc to) {
    level = to;
    rounder = rounded_sum(PowerMath<Acc>::kRounder + PowerMath<Acc>::kLift, -level);
    lowest = rounded_product(rounded_sum(level, -PowerMath<Acc>::kLowest), inverse);
  }
  /// z = scale · (x − origin), where the scale is so small that its product with the origin is finite: other elements
  /// that are no smaller multiples of it have no weight.
  __device__ void shift_by(Acc origin) {
    const Integer exponent = Math::bits(fabs(origin)) >> kMantissa;
    const Acc most = exponent < kBias ? Math::of_bits(Integer(2 * kBias) << kMantissa)
                                      : Math::of_bits((Integer(3 * kBias - 1) - exponent) << kMantissa);
    if (fabs(scale) > most) scale = scale < Acc(0) ? -most : most;
    shift = -rounded_product(origin, scale);
  }
};

template <class T, unsigned kElements>
__device__ Pack<T, kElements> negated(Pack<T, kElements> pack) {
#pragma unroll
  for (auto& part : pack.parts) {
    if constexpr (sizeof(T) == sizeof(part)) part = T(-convert<typename Select<kIsFloat16<T>, float, T>::type>(part));
    else part ^= 0x80008000u;
  }
  return pack;
}

/// The weights relative to 1, with two instructions less. The elements are those of a row, negated if the factor is
/// negative, which turn() does. Powers of two scale exactly, so that the results are those of Powers. One more
/// instruction is saved where elements that are less than `lowest` are known to be none, or weights do not matter.
template <class Acc, WeightPrecision kPrecision, bool kMayBeLow = true>
struct GuessedPowers : GuessedFactors<Acc> {
  using Math = PowerMath<Acc>;
  static constexpr bool kTurnsElements = true;
  using GuessedFactors<Acc>::high, GuessedFactors<Acc>::low, GuessedFactors<Acc>::lowest;

  Acc factor;

  __device__ Acc operator()(Acc x) const {
    if constexpr (kMayBeLow) x = larger<true>(x, lowest);
    return lifted_power<kPrecision>(x, high, low, Acc(Math::kRounder + Math::kLift));
  }
  __device__ GuessedPowers<Acc, kPrecision, false> of_none_low() const {
    return {static_cast<const GuessedFactors<Acc>&>(*this), factor};
  }
  /// True if a row with that largest element has such weights; false if it is a NaN or infinite.
  __device__ bool are_of(Acc heaviest) const {
    const Acc n = rounded_sum(fma(heaviest, high, Math::kRounder), -Math::kRounder);
    return fabs(n - Math::kCenter) <= Math::kWindow / 2;
  }
  template <class Packs>
  __device__ void turn(Packs& packs) const {
    behind_branch(factor < Acc(0), [&] {
      for (auto& pack : packs) pack = negated(pack);
    });
  }
};

}  // namespace hone
