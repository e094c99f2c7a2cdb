// The arithmetic of all softmax kernels: weights, the State (maximum and sum of weights, as in online softmax), and the
// results.
//
// The weight of an element x is 2^((x/2 − o/2) · 2·scale·log2 e), where the origin o is the largest of the elements
// that a thread holds (the smallest if the scale is negative). Halves, because the difference of two finite numbers may
// overflow and half of it cannot; one rounded product, because rounding scale·x first would lose the digits that all
// elements have in common; base 2, because SMs have an instruction for it.
//
// Special elements: a NaN or +∞ among scale·x makes every result of the row NaN, and so does a row of −∞ only. Next to
// finite elements, −∞ has weight 0.
#pragma once

#include "pack.cuh"
#include "pack_extremes.cuh"
#include "scalars.cuh"
#include "softmax_arguments.h"

namespace hone {

/// The caller's scale. The factors are never 0: a scale of 0 becomes the smallest positive number, so that −∞ keeps
/// weight 0 while all finite elements have equal weights.
template <class Acc>
struct SoftmaxScale : SoftmaxFactors<Acc> {
  using SoftmaxFactors<Acc>::factor, SoftmaxFactors<Acc>::exponent;

  explicit __device__ SoftmaxScale(const SoftmaxFactors<Acc>& factors) : SoftmaxFactors<Acc>(factors) {}

  __device__ bool descends() const { return exponent < Acc(0); }

  /// The element, negated if the scale is negative: the largest oriented element has the largest weight.
  __device__ Acc oriented(Acc x) const { return descends() ? -x : x; }
  __device__ Acc magnitude() const { return descends() ? -exponent : exponent; }

  /// An element that changes no State.
  __device__ Acc neutral() const { return descends() ? highest<Acc>() : lowest<Acc>(); }
};

/// The State of some elements of a row: the largest oriented element, and the sum of the weights relative to it.
template <class Acc>
struct SoftmaxState {
  Acc largest;
  Acc sum;

  static __device__ SoftmaxState identity() { return {lowest<Acc>(), Acc(0)}; }
};

/// The origin of weights: `largest`, or 0 if that is −∞, since −∞ − −∞ is NaN.
template <class Acc>
__device__ Acc softmax_origin(Acc largest) {
  return largest == lowest<Acc>() ? Acc(0) : largest;
}

/// The sum of `state`, rescaled to `largest`, which is not less than its own.
template <class Acc>
__device__ Acc rescaled_sum(SoftmaxState<Acc> state, Acc largest, Acc magnitude) {
  const Acc origin = softmax_origin(largest);
  return state.sum * power_of_two((state.largest * Acc(0.5) - origin * Acc(0.5)) * magnitude);
}

template <class Acc>
__device__ SoftmaxState<Acc> combine(SoftmaxState<Acc> a, SoftmaxState<Acc> b, Acc magnitude) {
  const Acc largest = larger<true>(a.largest, b.largest);
  return {largest, rescaled_sum(a, largest, magnitude) + rescaled_sum(b, largest, magnitude)};
}

/// Combines the States of each group of kLanes neighbouring lanes; all of them get the result. All lanes of the warp
/// must call it.
template <unsigned kLanes, class Acc>
__device__ SoftmaxState<Acc> combine_lanes(SoftmaxState<Acc> state, Acc magnitude) {
  if constexpr (kLanes == 1) return state;
  Acc largest = state.largest;
#pragma unroll
  for (unsigned offset = kLanes / 2; offset > 0; offset /= 2)
    largest = larger<true>(largest, __shfl_xor_sync(0xffffffffu, largest, static_cast<int>(offset)));
  Acc sum = rescaled_sum(state, largest, magnitude);
#pragma unroll
  for (unsigned offset = kLanes / 2; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, static_cast<int>(offset));
  return {largest, sum};
}

/// The element with the largest weight among some packs and `start`.
template <class Acc, class In, unsigned kElements, unsigned kPacks>
__device__ Acc heaviest_of(const Pack<In, kElements> (&packs)[kPacks], Acc start, const SoftmaxScale<Acc>& scale) {
  return scale.descends() ? extreme_of<false>(packs, start) : extreme_of<true>(packs, start);
}

/// The sum of the values, in a tree.
template <unsigned kCount, unsigned kFirst = 0, class Acc, unsigned kAll>
__device__ Acc tree_sum(const Acc (&values)[kAll]) {
  if constexpr (kCount == 1) return values[kFirst];
  else return tree_sum<kCount / 2, kFirst>(values) + tree_sum<kCount - kCount / 2, kFirst + kCount / 2>(values);
}

/// A pack of neutral elements, for padding.
template <class ElementPack, class Acc>
__device__ ElementPack neutral_pack(const SoftmaxScale<Acc>& scale) {
  return ElementPack::filled(convert<decltype(ElementPack()[0])>(scale.neutral()));
}

template <class Acc>
struct SoftmaxWeights {
  Acc half_origin;  ///< not oriented
  Acc exponent;

  SoftmaxWeights() = default;
  __device__ SoftmaxWeights(Acc heaviest, const SoftmaxScale<Acc>& scale)
      : half_origin(scale.oriented(softmax_origin(scale.oriented(heaviest))) * Acc(0.5)), exponent(scale.exponent) {}

  __device__ Acc of(Acc x) const { return power_of_two(fma(x, Acc(0.5), -half_origin) * exponent); }

  template <class In, unsigned kElements>
  __device__ Acc sum_of(const Pack<In, kElements>& pack) const {
    Acc values[kElements];
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) values[e] = of(convert<Acc>(pack[e]));
    return tree_sum<kElements>(values);
  }
};

/// Maps the elements of a row to results, once the State of the whole row is known.
template <class Acc, bool kLog>
struct SoftmaxResult {
  SoftmaxWeights<Acc> weights;
  Acc factor;      ///< of the logarithm: 2 · scale
  Acc reciprocal;  ///< 1 ÷ sum
  Acc logarithm;   ///< of the sum

  SoftmaxResult() = default;
  __device__ SoftmaxResult(SoftmaxState<Acc> row, const SoftmaxScale<Acc>& scale)
      : weights(scale.oriented(row.largest), scale),
        factor(scale.factor),
        reciprocal(kLog ? Acc(0) : Acc(1) / row.sum),
        logarithm(kLog ? natural_logarithm(row.sum) : Acc(0)) {}

  __device__ Acc of(Acc x) const {
    if constexpr (kLog) return fma(fma(x, Acc(0.5), -weights.half_origin), factor, -logarithm);
    else return weights.of(x) * reciprocal;
  }
};

}  // namespace hone
