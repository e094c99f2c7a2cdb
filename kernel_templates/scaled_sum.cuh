// ScaledSum: a sum of exponentials relative to a reference, which cannot overflow: the monoid of softmax and logsumexp.
#pragma once

#include "lanes.cuh"

namespace hone {

template <class Acc>
struct ScaledSum {
  Acc reference;  ///< one of the elements, or −∞; never NaN
  Acc sum;        ///< Σ exponential(element − reference); NaN, ∞ or 0 for special elements
};

/// How States combine, as an Op of Combine. The arithmetic of exponentials is Exponent's, which derives from this: its
/// rescaled(state, reference) is the sum of `state` relative to a reference that is not below the state's own.
template <class Acc, class Exponent>
struct ScaledSumMonoid {
  using State = ScaledSum<Acc>;

  static __device__ State identity() { return {lowest<Acc>(), Acc(0)}; }

  __device__ State combine(State a, State b) const {
    const bool b_is_above = b.reference > a.reference;
    const State above = b_is_above ? b : a;
    const State below = b_is_above ? a : b;
    return {above.reference, above.sum + exponent().rescaled(below, above.reference)};
  }

  /// Combines the States of each kLanes neighbouring lanes, or of those among them that are equal modulo kStride. The
  /// lanes agree on the reference first; then each rescales once.
  template <unsigned kLanes, unsigned kStride = 1>
  __device__ State in_all_lanes(State state) const {
    if constexpr (kLanes == kStride) return state;
    Acc reference = state.reference;
#pragma unroll
    for (unsigned mask = kLanes / 2; mask >= kStride; mask /= 2)
      reference = larger<true>(reference, shuffle_xor(reference, mask));
    Acc sum = exponent().rescaled(state, reference);
#pragma unroll
    for (unsigned mask = kLanes / 2; mask >= kStride; mask /= 2) sum += shuffle_xor(sum, mask);
    return {reference, sum};
  }

 private:
  __device__ const Exponent& exponent() const { return static_cast<const Exponent&>(*this); }
};

}  // namespace hone
