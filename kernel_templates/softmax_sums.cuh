// The arithmetic of all softmax kernels: weights, how States combine (maximum and sum of weights, as in online
// softmax), results, and the State of a thread's elements. A pack belongs to one row, or each element to a column.
//
// The weight of an element x is 2^((x/2 − o/2) · 2·scale·log2 e), where the origin o is the largest of the elements
// that a thread holds (the smallest if the scale is negative). Halves, because the difference of two finite numbers may
// overflow and half of it cannot; one rounded product, because rounding scale·x first would lose the digits that all
// elements have in common; base 2, because SMs have an instruction for it.
//
// A NaN or +∞ among scale·x makes the row's results NaN, and so does a row of −∞ only. Else −∞ has weight 0.
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

/// The types and constants of a kernel. A pack has kElements_ elements of kStates_ rows or columns, 1 or kElements_.
template <class In_, class Out_, class Acc_, class Index_, bool kLog_, unsigned kElements_, unsigned kStates_>
struct SoftmaxPackTypes {
  using In = In_;
  using Out = Out_;
  using Acc = Acc_;
  using Index = Index_;
  static constexpr bool kLog = kLog_;
  static constexpr unsigned kElements = kElements_, kStates = kStates_;
  using InPack = Pack<In, kElements>;
  using OutPack = Pack<Out, kElements>;
  using State = ScaledSum<Acc>;
  using Scale = SoftmaxScale<Acc>;
  using Result = SoftmaxResult<Acc, kLog>;

  /// Weights replace their elements if they have the same type, and are then computed only once.
  static constexpr bool kKeepsWeights = !kLog && kSame<In, Acc>;

  /// A pack of neutral elements, for padding.
  static __device__ InPack neutral_pack(const Scale& scale) { return InPack::filled(convert<In>(scale.neutral())); }
};

/// Online softmax: the heaviest elements so far, and the sums of the weights relative to them.
template <class Types>
struct SoftmaxSums {
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using Scale = typename Types::Scale;
  static constexpr unsigned kStates = Types::kStates;
  static constexpr unsigned kElements = Types::kElements / kStates;  ///< of a pack, in each State

  Acc heaviest[kStates];
  Acc sum[kStates];

  explicit __device__ SoftmaxSums(const Scale& scale) {
    unrolled<kStates>([&](unsigned s) {
      heaviest[s] = scale.neutral();
      sum[s] = Acc(0);
    });
  }

  __device__ typename Types::State state(unsigned s, const Scale& scale) const {
    return {scale.oriented(heaviest[s]), sum[s]};
  }

  __device__ void add(unsigned s, typename Types::State other, const Scale& scale) {
    const typename Types::State both = scale.combine(state(s, scale), other);
    heaviest[s] = scale.oriented(both.reference);
    sum[s] = both.sum;
  }

  /// Adds one element of a State of its own.
  __device__ void add(Acc x, const Scale& scale) requires(kStates == 1) {
    add(0, {scale.oriented(x), SoftmaxWeights<Acc>(x, scale).of(x)}, scale);
  }

  /// Adds the weights of some packs; with kKeep the weights replace the elements.
  template <bool kKeep, unsigned kPacks>
  __device__ void add(InPack (&tile)[kPacks], const Scale& scale) {
    raise_to(tile, scale);
    add_weights<kKeep>(tile, scale);
  }

  /// The heaviest elements become at least as heavy as those of some packs.
  template <unsigned kPacks>
  __device__ void raise_to(const InPack (&tile)[kPacks], const Scale& scale) {
    unrolled<kStates>([&](unsigned s) {
      Acc now = heaviest[s];
      if constexpr (kStates == 1) {
        now = scale.descends() ? extreme_of<false>(tile, now) : extreme_of<true>(tile, now);
      } else {
        unrolled<kPacks>([&](unsigned u) { now = scale.heavier(now, convert<Acc>(tile[u][s])); });
      }
      if (now == heaviest[s]) return;
      // For the initial State the compiler may omit the rescaling.
      sum[s] = sum[s] == Acc(0) ? Acc(0) : sum[s] * SoftmaxWeights<Acc>(now, scale).of(heaviest[s]);
      heaviest[s] = now;
    });
  }

  /// Adds the weights of packs none of whose elements is heavier than the heaviest.
  template <bool kKeep, unsigned kPacks>
  __device__ void add_weights(InPack (&tile)[kPacks], const Scale& scale) {
    unrolled<kStates>([&](unsigned s) {
      const SoftmaxWeights<Acc> weights(heaviest[s], scale);
      sum[s] += tree_of<monoid::Plus, kPacks>([&](unsigned u) {
        return tree_of<monoid::Plus, kElements>([&](unsigned e) {
          const Acc weight = weights.of(convert<Acc>(tile[u][s * kElements + e]));
          if constexpr (kKeep) tile[u].set(s * kElements + e, weight);
          return weight;
        });
      });
    });
  }
};

}  // namespace hone
