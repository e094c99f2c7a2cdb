// The logarithm of the sum of the exponentials of elements, in one pass, without overflow.
//
// Exponentials are summed relative to a reference r, an element that was seen: Σ exp(x − r). Once there is one, a tile
// is summed relative to it without a look at its largest element; only where that sum is large, infinite or NaN does
// its largest element become the reference, and the tile is summed anew. As the reference is an element, the sum is at
// least 1, and as no tile adds more than kMost, no element seen is above r + log kMost: log Σ + r is as precise as if r
// were the largest element.
#pragma once

#include "pack_extremes.cuh"
#include "reduce_ops.cuh"

namespace hone {

template <class Acc>
struct ScaledSum {
  Acc reference;  ///< one of the elements, or −∞; never NaN
  Acc sum;        ///< Σ exp(x − reference), where an infinite reference counts as 0: NaN, ∞ or 0 for special elements
};

template <class In, class Acc, class Index, bool kIgnoreNan>
struct LogSumExp : Reduction<LogSumExp<In, Acc, Index, kIgnoreNan>, In, ScaledSum<Acc>, Index> {
  using State = ScaledSum<Acc>;
  static constexpr bool kComputeBound = true;
  static constexpr bool kHasNeutral = true;

  static __device__ In neutral() { return convert<In>(lowest<Acc>()); }
  static __device__ State identity() { return {lowest<Acc>(), Acc(0)}; }
  static __device__ State of(In x, Index) {
    const Acc y = convert<Acc>(x);
    if (kIgnoreNan && is_nan(y)) return identity();
    return {larger<true>(y, lowest<Acc>()), exponential(y - shift(y))};
  }
  static __device__ State combine(State a, State b) {
    const bool b_is_above = b.reference > a.reference;
    const State above = b_is_above ? b : a;
    const State below = b_is_above ? a : b;
    return {above.reference, above.sum + scaled(below, above.reference)};
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ void accumulate(State& state, const ElementPack (&tile)[kPacks], Index, Index) {
    if (is_ordinary(state.reference)) {
      const TileValues<Acc, ElementPack, kPacks> all(tile);
      const Acc more = sum_above<true>(state.reference, all.values);
      if (more <= kMost) {
        state.sum += more;
        return;
      }
    }
    const LaunderedPacks again(tile);
    const TileValues<Acc, ElementPack, kPacks> all(again.packs);
    accumulate_above(state, extreme_of<true>(again.packs, state.reference), all.values);
  }

  /// All columns are summed before any sum is looked at: one branch for all of them.
  template <unsigned kColumns, unsigned kRows>
  static __device__ void accumulate_columns(State (&states)[kColumns], const Pack<In, kColumns> (&rows)[kRows],
                                            const Index (&)[kColumns], Index) {
    if (is_ordinary(states[0].reference)) {  // at first none is
      Acc more[kColumns];
      bool is_enough = true;
#pragma unroll
      for (unsigned e = 0; e < kColumns; ++e) {
        more[e] = sum_above<true>(states[e].reference, ColumnValues<kColumns, kRows>(rows, e).values);
        is_enough = is_enough & (more[e] <= kMost) & (!kMayBeHuge || is_ordinary(states[e].reference));
      }
      if (is_enough) {
#pragma unroll
        for (unsigned e = 0; e < kColumns; ++e) states[e].sum += more[e];
        return;
      }
    }
    const LaunderedPacks again(rows);
    const Pack<In, kColumns> largest = largest_of_columns(again.packs);
#pragma unroll
    for (unsigned e = 0; e < kColumns; ++e)
      accumulate_above(states[e], larger<true>(states[e].reference, convert<Acc>(largest[e])),
                       ColumnValues<kColumns, kRows>(again.packs, e).values);
  }

  /// Two short chains, of comparisons and of sums, instead of a long one of exponentials.
  static __device__ State of_states(const State* states, unsigned count, unsigned stride) {
    Acc reference = states[0].reference;
#pragma unroll 8
    for (unsigned i = 1; i < count; ++i) reference = larger<true>(reference, states[i * stride].reference);
    Acc sum(0);
#pragma unroll 8
    for (unsigned i = 0; i < count; ++i) sum += scaled(states[i * stride], reference);
    return {reference, sum};
  }

  /// The lanes agree on the reference before they rescale, each once.
  template <unsigned kLanes>
  static __device__ State of_lanes(State state) {
    Acc reference = state.reference;
#pragma unroll
    for (unsigned mask = kLanes / 2; mask > 0; mask /= 2)
      reference = larger<true>(reference, shuffle_xor(reference, mask));
    Acc sum = scaled(state, reference);
#pragma unroll
    for (unsigned mask = kLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    return {reference, sum};
  }

  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    const Acc from = shift(state.reference);
    if constexpr (kSame<Acc, float>) *out = convert<Out>(fmaf(binary_logarithm(state.sum), kLog2, from));
    else *out = convert<Out>(log(state.sum) + from);
  }

 private:
  /// The most that a tile may add: above the number of elements in any, so that a tile of nothing but references fits,
  /// and so small that the logarithm of what it adds costs no digit of the result.
  static constexpr Acc kMost = Acc(1024);

  static constexpr float kLog2OfE = 1.44269504f;
  static constexpr float kLog2 = 0.693147181f;

  /// Whether the rounding of a reference times log₂ e may be more than a digit of its exponential.
  static constexpr bool kMayBeHuge = kSame<Acc, float> && !kSame<In, Half>;

  /// Whether a tile may be summed relative to it unseen: it is finite, and as a float so small that the rounding of its
  /// product with log₂ e changes its own exponential by less than a tenth.
  static __device__ bool is_ordinary(Acc reference) {
    if constexpr (kSame<Acc, float>) return fabsf(reference) <= 0x1p20f;
    else return is_finite(reference);
  }

  static __device__ bool is_finite(Acc reference) {
    if constexpr (kSame<Acc, float>) return fabsf(reference) < highest<float>();
    else return fabs(reference) < highest<Acc>();
  }

  /// What is subtracted before the exponential: the reference, unless a difference from it would be NaN.
  static __device__ Acc shift(Acc reference) { return is_finite(reference) ? reference : Acc(0); }

  /// One column of some rows.
  template <unsigned kColumns, unsigned kRows>
  struct ColumnValues {
    Acc values[kRows];

    __device__ ColumnValues(const Pack<In, kColumns> (&rows)[kRows], unsigned column) {
#pragma unroll
      for (unsigned u = 0; u < kRows; ++u) values[u] = convert<Acc>(rows[u][column]);
    }
  };

  /// The sum relative to a reference that is not below the state's. A difference of two is NaN only where they are
  /// equal.
  static __device__ Acc scaled(State state, Acc reference) {
    return state.reference == reference ? state.sum : state.sum * exponential(state.reference - reference);
  }

  /// Where a float's result is subnormal, 0: next to a sum of at least 1 it is nothing.
  static __device__ Acc exponential(Acc x) {
    if constexpr (kSame<Acc, float>) return power_of_two(x * kLog2OfE);
    else return exp(x);
  }

  /// Σ exp(x − reference); NaNs add nothing if they are ignored. In floats x − reference is one multiplication and
  /// addition with log₂ e: rounding reference · log₂ e is as if `reference` were off by its last bit, and the same for
  /// every x.
  template <bool kIsOrdinary, unsigned kCount>
  static __device__ Acc sum_above(Acc reference, const Acc (&values)[kCount]) {
    const Acc from = kIsOrdinary ? reference : shift(reference);
    Acc terms[kCount];
    if constexpr (kSame<Acc, float>) {
      // Beyond 2^30 that last bit would be an overflow. But floats so large are equal or so far apart that the smaller
      // add nothing, whatever the base, and in base 2 their differences are exact.
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

  /// Adds values of which none is above `reference`, which is not below the state's. Compilers may know that there is
  /// nothing to be rescaled.
  template <unsigned kCount>
  static __device__ void accumulate_above(State& state, Acc reference, const Acc (&values)[kCount]) {
    const Acc before = state.sum == Acc(0) ? Acc(0) : scaled(state, reference);
    state = {reference, before + sum_above<false>(reference, values)};
  }

  template <unsigned kColumns, unsigned kRows>
  static __device__ Pack<In, kColumns> largest_of_columns(const Pack<In, kColumns> (&rows)[kRows]) {
    Pack<In, kColumns> largest = rows[0];
#pragma unroll
    for (unsigned u = 1; u < kRows; ++u) largest = extremes_of<true>(largest, rows[u]);
    return largest;
  }
};

}  // namespace hone
