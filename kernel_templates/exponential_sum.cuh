// The arithmetic of logsumexp: exponentials relative to a reference, or to 0 if that is infinite.
#pragma once

#include "monoids.cuh"
#include "reduction.cuh"
#include "scaled_sum.cuh"

namespace hone {

template <class In, class Acc, bool kIgnoreNan>
struct ExponentialSum : ScaledSumMonoid<Acc, ExponentialSum<In, Acc, kIgnoreNan>> {
  using State = ScaledSum<Acc>;

  /// The largest sum of a tile that keeps the reference. It is above the number of elements of any tile, so that a tile
  /// full of references passes, and so small that its logarithm costs no digit of the result.
  static constexpr Acc kMaxTileSum = Acc(1024);

  static constexpr float kLog2OfE = 1.44269504f;
  static constexpr float kLog2 = 0.693147181f;

  /// Whether the rounding error of reference · log₂ e may change its exponential by more than its last digit.
  static constexpr bool kMayBeHuge = kSame<Acc, float> && !kSame<In, Half>;

  /// Whether a tile may be summed relative to `reference` before its maximum is known: it is finite, and as a float so
  /// small that the rounding of its product with log₂ e changes its own exponential by less than a tenth.
  static __device__ bool is_ordinary(Acc reference) {
    if constexpr (kSame<Acc, float>) return fabsf(reference) <= 0x1p20f;
    else return is_finite(reference);
  }

  static __device__ bool is_finite(Acc reference) {
    if constexpr (kSame<Acc, float>) return fabsf(reference) < highest<float>();
    else return fabs(reference) < highest<Acc>();
  }

  /// The shift of the exponents: the reference, or 0 if it is infinite, since a difference from it may be NaN.
  static __device__ Acc shift(Acc reference) { return is_finite(reference) ? reference : Acc(0); }

  /// The difference of two references is NaN only if they are equal.
  static __device__ Acc rescaled(State state, Acc reference) {
    return state.reference == reference ? state.sum : state.sum * exponential(state.reference - reference);
  }

  /// A subnormal float result is flushed to 0, which is negligible in a sum of at least 1.
  static __device__ Acc exponential(Acc x) {
    if constexpr (kSame<Acc, float>) return power_of_two(x * kLog2OfE);
    else return exp(x);
  }

  /// Σ exp(x − reference); ignored NaNs add 0. In float, (x − reference) · log₂ e is one FMA: rounding reference · log₂
  /// e is equivalent to an error in the last bit of `reference`, the same for every x.
  template <bool kIsOrdinary, unsigned kCount>
  static __device__ Acc sum_above(Acc reference, const Acc (&values)[kCount]) {
    const Acc from = kIsOrdinary ? reference : shift(reference);
    Acc terms[kCount];
    if constexpr (kSame<Acc, float>) {
      // Beyond 2^30 that error would overflow the exponential. But floats so large are equal, or so far apart that the
      // smaller ones add 0 in any base; so base 2 will do, in which their differences are exact.
      const float factor = kIsOrdinary || !kMayBeHuge || fabsf(from) <= 0x1p30f ? kLog2OfE : 1.0f;
      const float offset = -from * factor;
#pragma unroll
      for (unsigned i = 0; i < kCount; ++i) terms[i] = power_of_two(fmaf(values[i], factor, offset));
    } else {
#pragma unroll
      for (unsigned i = 0; i < kCount; ++i) terms[i] = exp(values[i] - from);
    }
    if constexpr (kIgnoreNan) {
#pragma unroll
      for (unsigned i = 0; i < kCount; ++i) terms[i] = larger<true>(terms[i], Acc(0));
    }
    return combine_tree<monoid::Plus, kCount>(terms);
  }
};

}  // namespace hone
