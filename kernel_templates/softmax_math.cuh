// The arithmetic that all softmax kernels share: weights, the pair of largest element and sum that groups of threads
// agree on, and how results follow from it.
//
// Elements x become weights 2^((x/2 − o/2) · 2·scale·log2 e), where o is the largest of the elements that a thread
// holds (the smallest where the scale is negative): halves, since the difference of two finite numbers may overflow and
// half of it cannot; one rounded product, since a rounded scale·x would lose what is common to all elements; a base of
// 2, since that is what multiprocessors have an instruction for.
//
// What follows for special elements: a NaN or a +∞ among scale·x makes every result of the row NaN, and so does a row
// of nothing but −∞. Where other elements are finite, one of −∞ gets the weight 0.
#pragma once

#include "pack.cuh"
#include "pack_extremes.cuh"
#include "scalars.cuh"

namespace hone {

/// What the caller's scale becomes. Neither is ever 0: instead of 0 it is the smallest positive number, so that −∞
/// keeps its weight of 0 while all finite elements get the same.
template <class Acc>
struct SoftmaxScale {
  Acc factor;    ///< 2 · scale
  Acc exponent;  ///< 2 · scale · log2 e

  __device__ bool descends() const { return exponent < Acc(0); }

  /// Turns an element around where the smallest has the largest weight.
  __device__ Acc oriented(Acc x) const { return descends() ? -x : x; }
  __device__ Acc magnitude() const { return descends() ? -exponent : exponent; }

  /// An element that adds nothing to any sum.
  __device__ Acc neutral() const { return descends() ? highest<Acc>() : lowest<Acc>(); }
};

/// Of some elements of a row: the largest (oriented, where the scale is negative), and the sum of their weights
/// relative to it.
template <class Acc>
struct SoftmaxState {
  Acc largest;
  Acc sum;

  static __device__ SoftmaxState identity() { return {lowest<Acc>(), Acc(0)}; }
};

/// What weights are relative to: `largest`, unless the difference of −∞ from it would be NaN.
template <class Acc>
__device__ Acc softmax_origin(Acc largest) {
  return largest == lowest<Acc>() ? Acc(0) : largest;
}

/// The sum of `state` relative to `largest`, which is no smaller than its own.
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

/// Combines the states of groups of kLanes neighbouring lanes; all of them get the result. All lanes of the warp must
/// call it.
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

/// The element of most weight among some packs and `start`.
template <class Acc, class In, unsigned kElements, unsigned kPacks>
__device__ Acc heaviest_of(const Pack<In, kElements> (&packs)[kPacks], Acc start, const SoftmaxScale<Acc>& scale) {
  return scale.descends() ? extreme_of<false>(packs, start) : extreme_of<true>(packs, start);
}

/// The values of a pack, added in a tree.
template <unsigned kCount, unsigned kFirst = 0, class Acc, unsigned kAll>
__device__ Acc tree_sum(const Acc (&values)[kAll]) {
  if constexpr (kCount == 1) return values[kFirst];
  else return tree_sum<kCount / 2, kFirst>(values) + tree_sum<kCount - kCount / 2, kFirst + kCount / 2>(values);
}

/// A pack of elements that add nothing to any sum.
template <class ElementPack, class Acc>
__device__ ElementPack neutral_pack(const SoftmaxScale<Acc>& scale) {
  return ElementPack::filled(convert<decltype(ElementPack()[0])>(scale.neutral()));
}

template <class Acc>
struct SoftmaxWeights {
  Acc half_origin;  ///< in the elements' own direction
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

/// What turns the elements of a row into results once the state of the whole row is known.
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
