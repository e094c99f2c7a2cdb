// The arithmetic of all softmax kernels: weights, how States combine (maximum and sum of weights, as in online
// softmax), and results.
//
// The weight of an element x is 2^((x/2 − o/2) · 2·scale·log2 e), where the origin o is the largest of the elements
// that a thread holds (the smallest if the scale is negative). Halves, because the difference of two finite numbers may
// overflow and half of it cannot; one rounded product, because rounding scale·x first would lose the digits that all
// elements have in common; base 2, because SMs have an instruction for it.
//
// Special elements: a NaN or +∞ among scale·x makes every result of the row NaN, and so does a row of −∞ only. Next to
// finite elements, −∞ has weight 0.
#pragma once

#include "monoids.cuh"
#include "softmax_arguments.h"

namespace hone {

/// The caller's scale, and how States combine. The factors are never 0: a scale of 0 becomes the smallest positive
/// number, so that −∞ keeps weight 0 while all finite elements have equal weights.
template <class Acc>
struct SoftmaxScale : SoftmaxFactors<Acc>, ScaledSumMonoid<Acc, SoftmaxScale<Acc>> {
  using SoftmaxFactors<Acc>::factor, SoftmaxFactors<Acc>::exponent;

  explicit __device__ SoftmaxScale(const SoftmaxFactors<Acc>& factors) : SoftmaxFactors<Acc>(factors) {}

  __device__ bool descends() const { return exponent < Acc(0); }

  /// The element, negated if the scale is negative: the largest oriented element has the largest weight.
  __device__ Acc oriented(Acc x) const { return descends() ? -x : x; }

  /// An element that changes no State.
  __device__ Acc neutral() const { return descends() ? highest<Acc>() : lowest<Acc>(); }

  __device__ Acc heavier(Acc a, Acc b) const { return descends() ? smaller<true>(a, b) : larger<true>(a, b); }

  /// The references of States are oriented. That of no elements, −∞, has the origin 0, since −∞ − −∞ is NaN.
  __device__ Acc rescaled(ScaledSum<Acc> state, Acc reference) const {
    const Acc origin = reference == lowest<Acc>() ? Acc(0) : reference;
    return state.sum * power_of_two((state.reference * Acc(0.5) - origin * Acc(0.5)) * oriented(exponent));
  }
};

/// Weights relative to the heaviest of some elements, or to 0 if there is none.
template <class Acc>
struct SoftmaxWeights {
  Acc half_origin;
  Acc exponent;

  SoftmaxWeights() = default;
  __device__ SoftmaxWeights(Acc heaviest, const SoftmaxScale<Acc>& scale)
      : half_origin(heaviest == scale.neutral() ? Acc(0) : heaviest * Acc(0.5)), exponent(scale.exponent) {}

  __device__ Acc of(Acc x) const { return power_of_two(fma(x, Acc(0.5), -half_origin) * exponent); }
};

/// Maps the elements of a row to results, once the State of the whole row is known.
template <class Acc, bool kLog>
struct SoftmaxResult {
  SoftmaxWeights<Acc> weights;
  Acc factor;      ///< of the logarithm: 2 · scale
  Acc reciprocal;  ///< 1 ÷ sum
  Acc logarithm;   ///< of the sum

  SoftmaxResult() = default;
  __device__ SoftmaxResult(ScaledSum<Acc> row, const SoftmaxScale<Acc>& scale)
      : weights(scale.oriented(row.reference), scale),
        factor(scale.factor),
        reciprocal(kLog ? Acc(0) : Acc(1) / row.sum),
        logarithm(kLog ? log(row.sum) : Acc(0)) {}

  __device__ Acc of(Acc x) const {
    if constexpr (kLog) return fma(fma(x, Acc(0.5), -weights.half_origin), factor, -logarithm);
    else return weights.of(x) * reciprocal;
  }

  /// The result of an element is its weight relative to `heaviest`, times this.
  __device__ Acc of_weights(Acc heaviest) const { return weights.of(heaviest) * reciprocal; }
};

}  // namespace hone
