// Exponentials and logarithms made of IEEE operations alone, so that all devices agree (docs/numerics.md).
#pragma once

#include "canonical_ops.cuh"

namespace hone {

/// The coefficients of series.
struct InverseFactorials {
  static __device__ constexpr double factorial(unsigned n) { return n == 0 ? 1 : n * factorial(n - 1); }
  template <class Acc, unsigned kPower> static constexpr Acc kOf = Acc(1) / Acc(factorial(kPower));
};
struct InverseOdds {
  template <class Acc, unsigned kPower> static constexpr Acc kOf = Acc(2) / Acc(2 * kPower + 1);
};
/// exp(r) for |r| ≤ ½ ln 2, within 2^-28.2: the polynomial 1 + r + … whose largest error is the least.
struct NearestToExponential {
  static constexpr float kAll[] = {1, 1, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558aap-5f, 0x1.12396cp-7f, 0x1.6a5232p-10f};
  template <class Acc, unsigned kPower> static constexpr Acc kOf = kAll[kPower];
};

/// ln 2 in two parts, the first of which has so few digits that its multiples are exact; where the exponential is 0,
/// and where it is not subnormal yet; how far from 0 the largest element of a sum that is relative to 1 may be; and how
/// many terms of the series reach the last digit. x + kRounder is the integer nearest to a small x, in its lowest bits.
template <class Acc>
struct CanonicalMath;
template <>
struct CanonicalMath<float> {
  static constexpr float kLog2OfE = 0x1.715476p+0f, kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kSqrt2 = 0x1.6a09e6p0f, kLowest = -104.0f, kLowestNormal = -87.0f, kMostNear = 32.0f;
  using Exponential = NearestToExponential;
  static constexpr unsigned kExponentialDegree = 6, kLogarithmDegree = 5;
  static constexpr int kMantissa = 23, kBias = 127, kLift = 64;
  static constexpr float kRounder = 0x1.8p23f, kLower = 0x1p-64f;
  using Bits = unsigned;
  static __device__ int bits(float x) { return __float_as_int(x); }
  static __device__ float of_bits(int bits) { return __int_as_float(bits); }
};
template <>
struct CanonicalMath<double> {
  static constexpr double kLog2OfE = 0x1.71547652b82fep+0, kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kSqrt2 = 0x1.6a09e667f3bcdp0, kLowest = -746.0, kLowestNormal = -708.0, kMostNear = 256.0;
  using Exponential = InverseFactorials;
  static constexpr unsigned kExponentialDegree = 13, kLogarithmDegree = 11;
  static constexpr int kMantissa = 52, kBias = 1023, kLift = 512;
  static constexpr double kRounder = 0x1.8p52, kLower = 0x1p-512;
  using Bits = unsigned long long;
  static __device__ long long bits(double x) { return __double_as_longlong(x); }
  static __device__ double of_bits(long long bits) { return __longlong_as_double(bits); }
};

/// Horner's scheme, with one fma for each coefficient but the last.
template <class Coefficients, unsigned kLast, unsigned kFrom = 0, class Acc>
__device__ Acc horner(Acc x) {
  constexpr Acc kCoefficient = Coefficients::template kOf<Acc, kFrom>;
  if constexpr (kFrom == kLast) return kCoefficient;
  else return fma(horner<Coefficients, kLast, kFrom + 1>(x), x, kCoefficient);
}

/// 2^kLift · exp(d): 2^(kLift + k) · Σ cⱼ·r^j, where r = d − k·ln 2; of d below `lowest`, or NaN, that of `lowest`.
/// Every instruction counts: logsumexp of f16 has time for 19 an element at the full bandwidth of an H100. So a fused
/// multiply-add rounds to an integer, whose bits then scale exactly: the result must neither be subnormal nor overflow.
template <class Acc, int kLift>
__device__ Acc exponential_from(Acc lowest, Acc d) {
  using Math = CanonicalMath<Acc>;
  using Bits = typename Math::Bits;
  constexpr Acc kRounder = Math::kRounder + kLift;
  const Acc x = larger<true>(d, lowest);
  const Acc rounded = fma(x, Math::kLog2OfE, kRounder);
  const Acc k = rounded_sum(rounded, -kRounder);
  const Acc r = fma(-k, Math::kLn2Low, fma(-k, Math::kLn2High, x));
  const Acc sum = horner<typename Math::Exponential, Math::kExponentialDegree>(r);
  return Math::of_bits(static_cast<Bits>(Math::bits(sum)) +
                       (static_cast<Bits>(Math::bits(rounded)) << Math::kMantissa));
}
/// exp(d) of d ≤ 0.
template <class Acc>
__device__ Acc canonical_exponential(Acc d) {
  using Math = CanonicalMath<Acc>;
  // The exponential of kLowest is 0 already.
  return is_nan(d) ? d : rounded_product(exponential_from<Acc, Math::kLift>(Math::kLowest, d), Math::kLower);
}
/// exp(x) of x ≤ kMostNear, which is never subnormal, nor 0 or NaN.
template <class Acc>
__device__ Acc near_exponential(Acc x) { return exponential_from<Acc, 0>(CanonicalMath<Acc>::kLowestNormal, x); }

/// 1 ÷ x, rounded once, of x that are as far from overflow as their reciprocals: __frcp_rn() without its checks.
__device__ inline float reciprocal(float x) {
#ifdef HONE_HOST_DEVICE
  return 1 / x;
#else
  float near;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));
  return fma(near, -fma(x, near, -1.0f), near);
#endif
}
__device__ inline double reciprocal(double x) { return 1 / x; }

/// a ÷ b, rounded once, of numbers that are as far from overflow and from subnormal ones as what is left of a; without
/// the checks of a division.
__device__ inline float quotient(float a, float b) {
#ifdef HONE_HOST_DEVICE
  return a / b;
#else
  const float by = reciprocal(b), near = rounded_product(a, by);
  const float nearer = fma(by, fma(-b, near, a), near);
  return fma(by, fma(-b, nearer, a), nearer);
#endif
}
__device__ inline double quotient(double a, double b) { return a / b; }

/// ln s for normal, finite s > 0: k·ln 2 + 2·artanh(z), where s = 2^k·m, z = (m − 1) ÷ (m + 1).
template <class Acc>
__device__ Acc logarithm_of_normal(Acc s) {
  using Math = CanonicalMath<Acc>;
  using Integer = decltype(Math::bits(s));
  const Integer bits = Math::bits(s);
  int exponent = static_cast<int>(bits >> Math::kMantissa) - Math::kBias;
  Acc m = Math::of_bits((bits & ((Integer(1) << Math::kMantissa) - 1)) | Integer(Math::kBias) << Math::kMantissa);
  if (m > Math::kSqrt2) {
    m = rounded_product(m, Acc(0.5));
    ++exponent;
  }
  const Acc f = m - Acc(1), z = quotient(f, f + Acc(2)), w = rounded_product(z, z);
  const Acc sum = horner<InverseOdds, Math::kLogarithmDegree>(w);
  const Acc k = static_cast<Acc>(exponent);
  return fma(k, Math::kLn2High, fma(k, Math::kLn2Low, rounded_product(z, sum)));
}
template <class Acc>
__device__ Acc canonical_logarithm(Acc s) {
  if (!(s > Acc(0)) || s == highest<Acc>()) return s > Acc(0) ? s : canonical_nan<Acc>();
  return logarithm_of_normal(s);
}

}  // namespace hone
