// The arithmetic of reproducible softmax: the heaviest element, weights relative to it, and results (docs/numerics.md).
//
// Special elements are those of softmax_sums.cuh: a NaN or +∞ among scale·x makes every result of the row NaN, and so
// does a row of −∞ only.
#pragma once

#include "canonical_powers.cuh"
#include "extreme_element.cuh"

namespace hone {

/// kIsAligned_: rows begin at multiples of a pack in both arrays.
template <class In_, class Out_, class Acc_, class Index_, bool kLog_, unsigned kPack_, bool kIsAligned_ = true>
struct CanonicalSoftmaxTypes {
  using In = In_;
  using Out = Out_;
  using Acc = Acc_;
  using Index = Index_;
  using Arguments = CanonicalSoftmaxArguments<Acc>;
  static constexpr bool kLog = kLog_;
  static constexpr unsigned kPack = kPack_;
  static constexpr bool kIsAligned = kIsAligned_;
  static constexpr bool kForgetsLane = false;  ///< as RowPacks takes it
  using InPack = Pack<In, kPack>;
  using OutPack = Pack<Out, kPack>;
  static constexpr WeightPrecision kPrecision =
      kSame<Acc, float> && sizeof(Out) == 2 ? WeightPrecision::reduced : WeightPrecision::full;
  using Powers = hone::Powers<Acc, kPrecision>;
  using GuessedPowers = hone::GuessedPowers<Acc, kPrecision>;
};

/// The heaviest element, negated if the scale is negative: an operation of CanonicalChunks, and any other tree.
template <class Types>
struct HeaviestElement {
  using In = typename Types::In;
  using Index = typename Types::Index;
  using State = typename Types::Acc;
  using Acc = State;
  Acc factor;

  static __device__ Acc absent() { return lowest<Acc>(); }
  static __device__ Acc combine(Acc a, Acc b) { return larger<false>(a, b); }
  static __device__ Acc in_warp(Acc x)
    requires kSame<Acc, float>
  {
    return largest_of_warp(x);
  }
  template <class T>
  static __device__ T prepared(const T& packed) { return packed; }
  __device__ Acc leaf(In x) const { return factor < Acc(0) ? -convert<Acc>(x) : convert<Acc>(x); }
};

/// The sum of a row's weights as results use it: the sum and its reciprocal, or the logarithm of the sum relative to
/// the heaviest element.
template <class Acc>
struct SoftmaxNorm {
  Acc sum, by;
};

/// Weights of the elements of a row, which are powers of two lifted as in canonical_powers.cuh: an operation of
/// CanonicalChunks, and the results. Its elements are as its Powers_ take them.
template <class Types, class Powers_ = typename Types::Powers>
struct SoftmaxWeight : CanonicalSum<typename Types::Acc> {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Index = typename Types::Index;
  using Acc = typename Types::Acc;
  using Norm = SoftmaxNorm<Acc>;
  static constexpr bool kIsAligned = Types::kIsAligned;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  Powers_ powers;
  Acc origin, factor;
  bool is_nan;  ///< a NaN, an infinite weight, or nothing but weights of 0

  SoftmaxWeight() = default;
  __device__ SoftmaxWeight(Acc heaviest, Acc factor_)
    requires(!Powers_::kTurnsElements)
      : SoftmaxWeight(Powers_(factor_ < Acc(0) ? -heaviest : heaviest, factor_), heaviest, factor_) {}
  /// `guessed` are the powers of a row with that heaviest element.
  __device__ SoftmaxWeight(const Powers_& guessed, Acc heaviest)
    requires Powers_::kTurnsElements
      : powers(guessed), origin(heaviest), factor(guessed.factor), is_nan(false) {}
  __device__ auto of_none_low() const {
    auto of_none_low = powers.of_none_low();
    return SoftmaxWeight<Types, decltype(of_none_low)>(of_none_low, origin);
  }
  /// The same if weights are relative to 1.
  static __device__ SoftmaxWeight relative_to_1(Acc heaviest, Acc factor) {
    return {Powers_(factor), heaviest, factor};
  }

  static __device__ Acc absent() { return -Acc(0); }
  template <class T>
  static __device__ T prepared(const T& packed) { return packed; }
  /// Half of an element relative to the heaviest one, because the difference of two finite numbers may overflow.
  __device__ Acc half_exponent(Acc x) const {
    const Acc half = Powers_::kTurnsElements && factor < Acc(0) ? Acc(-0.5) : Acc(0.5);
    return fma(x, half, -rounded_product(origin, half));
  }
  /// In a row with a NaN it is any number.
  __device__ Acc weight(Acc x) const { return powers(x); }
  __device__ Acc leaf(In x) const { return weight(convert<Acc>(x)); }

  /// True if sums relative to 1 are those of this row, or do not matter.
  __device__ bool is_guessed() const { return is_nan || powers.is_relative_to_1(); }

  /// kIsHeld: of a row that threads hold, so that the sum is far from overflow.
  template <bool kIsHeld = false>
  __device__ Norm norm(Acc sum) const {
    if constexpr (Types::kLog && kIsHeld) return {sum, logarithm_of_normal(quotient(sum, weight(origin)))};
    else if constexpr (Types::kLog) return {sum, canonical_logarithm(sum / weight(origin))};
    else return {sum, kIsHeld ? reciprocal(sum) : Acc(1) / sum};
  }
  /// True if products with the factor, a power of two, are not rounded (a subnormal one is nothing beside a logarithm).
  __device__ bool scales_exactly() const {
    using Math = CanonicalMath<Acc>;
    return (Math::bits(factor) & ((decltype(Math::bits(factor))(1) << Math::kMantissa) - 1)) == 0;
  }
  /// `kept`: the element, or its weight. Not for a row with is_nan. The quotient by a reciprocal is corrected where
  /// the result has all its digits, so that it is 1 where the sum is the weight.
  template <bool kScalesExactly = false>
  __device__ Out of_kept(Acc kept, const Norm& norm) const {
    return convert<Out>(wide_of_kept<kScalesExactly>(kept, norm));
  }
  /// Before it is rounded to the result's dtype.
  template <bool kScalesExactly = false>
  __device__ Acc wide_of_kept(Acc kept, const Norm& norm) const {
    if constexpr (Types::kLog && kScalesExactly) {
      return fma(half_exponent(kept), factor, -norm.by);
    } else if constexpr (Types::kLog) {
      return rounded_sum(rounded_product(half_exponent(kept), factor), -norm.by);
    } else {
      const Acc quotient = rounded_product(kept, norm.by);
      if constexpr (sizeof(Out) < sizeof(Acc)) return quotient;
      else return fma(fma(-quotient, norm.sum, kept), norm.by, quotient);
    }
  }
  /// Calls to.write(where…, result), where result(u, e) is that of kept(u, e), which is as of_kept() takes it.
  template <class To, class... Where>
  __device__ void write_results(const To& to, const Norm& norm, const auto& kept, const Where&... where) const {
    if (is_nan) {
      to.write(where..., [](unsigned, unsigned) { return canonical_nan<Out>(); });
    } else if (Types::kLog && scales_exactly()) {
      to.write(where..., [&](unsigned u, unsigned e) { return of_kept<true>(kept(u, e), norm); });
    } else {
      to.write(where..., [&](unsigned u, unsigned e) { return of_kept(kept(u, e), norm); });
    }
  }
  __device__ OutPack results(const InPack& pack, const Norm& norm) const {
    if (is_nan) return OutPack::filled(canonical_nan<Out>());
    return OutPack::of([&](unsigned e) { return number(pack[e], norm); });
  }
  __device__ Out result(In x, const Norm& norm) const { return is_nan ? canonical_nan<Out>() : number(x, norm); }

 protected:
  __device__ SoftmaxWeight(const Powers_& powers_, Acc heaviest, Acc factor_)
      : powers(powers_),
        origin(factor_ < Acc(0) ? -heaviest : heaviest),
        factor(factor_),
        is_nan(!(fabs(heaviest) < highest<Acc>())) {}

  __device__ Out number(In x, const Norm& norm) const {
    const Acc wide = convert<Acc>(x);
    return of_kept(Types::kLog ? wide : weight(wide), norm);
  }
};

/// heaviest() of a row whose largest element (smallest, if factor < 0) is `origin`, a zero of either sign: exponents of
/// zeros are +0 · factor then, as they are relative to themselves.
template <class Acc>
__device__ Acc heaviest_of_origin(Acc origin, Acc factor) {
  if (origin == Acc(0)) return factor < Acc(0) ? Acc(0) : -Acc(0);
  return factor < Acc(0) ? -origin : origin;
}

/// Where the rows of a call are.
template <class Types>
__device__ const typename Types::In* softmax_input(const typename Types::Arguments& all, unsigned long long row) {
  return static_cast<const typename Types::In*>(all.in) + static_cast<long long>(row) * all.in_pitch;
}
template <class Types>
__device__ typename Types::Out* softmax_output(const typename Types::Arguments& all, unsigned long long row) {
  return static_cast<typename Types::Out*>(all.out) + static_cast<long long>(row) * all.out_pitch;
}

}  // namespace hone
