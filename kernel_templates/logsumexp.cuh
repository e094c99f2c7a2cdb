// logsumexp: the logarithm of the sum of exponentials, in one pass, without overflow.
//
// Exponentials are summed relative to a reference r, one of the elements seen: Σ exp(x − r). A tile is first summed
// relative to the current reference, without its maximum. Only if that sum is large, infinite or NaN does the maximum
// become the reference, and the tile is summed again. The sum is at least 1, since r is an element; no tile adds more
// than kMaxTileSum, so no element is above r + log kMaxTileSum: log Σ + r is as precise as if r were the maximum.
#pragma once

#include "reduction.cuh"

namespace hone {

/// Exponentials relative to a reference, or to 0 if that is infinite.
template <class In, class Acc, bool kIgnoreNan>
struct ExponentialSum : ScaledSumMonoid<Acc, ExponentialSum<In, Acc, kIgnoreNan>> {
  using State = ScaledSum<Acc>;

  /// The largest sum of a tile that keeps the reference. It is above the number of elements of any tile, so that a tile
  /// full of references passes, and so small that its logarithm costs no digit of the result.
  static constexpr Acc kMaxTileSum = Acc(1024);

  static constexpr float kLog2OfE = 1.44269504f;
  static constexpr float kLog2 = 0.693147181f;

  /// True if the rounding error of reference · log₂ e may change its exponential by more than its last digit.
  static constexpr bool kMayBeHuge = kSame<Acc, float> && !kSame<In, Half>;

  /// True if a tile may be summed relative to `reference` before its maximum is known: it is finite, and as a float so
  /// small that the rounding of its product with log₂ e changes its own exponential by less than a tenth.
  static __device__ bool is_ordinary(Acc reference) {
    return kSame<Acc, float> ? fabs(reference) <= Acc(0x1p20) : is_finite(reference);
  }
  static __device__ bool is_finite(Acc reference) { return fabs(reference) < highest<Acc>(); }

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
    // Beyond 2^30 that error would overflow the exponential. But floats so large are equal, or so far apart that the
    // smaller ones add 0 in any base; so base 2 will do, in which their differences are exact.
    const float factor = kIsOrdinary || !kMayBeHuge || fabs(from) <= Acc(0x1p30) ? kLog2OfE : 1.0f;
    const Acc offset = -from * factor;
    return tree_of<monoid::Plus, kCount>([&](unsigned i) {
      Acc term;
      if constexpr (kSame<Acc, float>) term = power_of_two(fmaf(values[i], factor, offset));
      else term = exp(values[i] - from);
      return kIgnoreNan ? larger<true>(term, Acc(0)) : term;
    });
  }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
struct LogSumExp : Reduction<LogSumExp<In, Acc, Index, kIgnoreNan>, In, ScaledSum<Acc>, Index> {
  using State = ScaledSum<Acc>;
  using Exp = ExponentialSum<In, Acc, kIgnoreNan>;
  static constexpr bool kComputeBound = true;
  static constexpr bool kHasNeutral = true;

  static __device__ In neutral() { return convert<In>(lowest<Acc>()); }
  static __device__ State identity() { return Exp::identity(); }
  static __device__ State of(In x, Index) {
    const Acc y = convert<Acc>(x);
    if (kIgnoreNan && is_nan(y)) return identity();
    return {larger<true>(y, lowest<Acc>()), Exp::exponential(y - Exp::shift(y))};
  }
  static __device__ State combine(State a, State b) { return Exp().combine(a, b); }
  template <unsigned kLanes>
  static __device__ State of_lanes(State state) {
    return Exp().template in_all_lanes<kLanes>(state);
  }

  /// Two short dependency chains, of comparisons and of additions, instead of a long one of exponentials.
  static __device__ State of_states(const State* states, unsigned count, unsigned stride) {
    Acc reference = states[0].reference;
#pragma unroll 8
    for (unsigned i = 1; i < count; ++i) reference = larger<true>(reference, states[i * stride].reference);
    Acc sum(0);
#pragma unroll 8
    for (unsigned i = 0; i < count; ++i) sum += Exp::rescaled(states[i * stride], reference);
    return {reference, sum};
  }

  template <bool kWithWarp = false>
  static __device__ void accumulate(State& state, const auto& tile, Index, Index) {
    if (Exp::is_ordinary(state.reference)) {
      const Acc more = Exp::template sum_above<true>(state.reference, tile_values<Acc>(tile).values);
      if (more <= Exp::kMaxTileSum) {
        state.sum += more;
        return;
      }
    }
    const auto again = launder(tile);
    const auto all = tile_values<Acc>(again.values);
    accumulate_above(state, extreme_of<true>(again.values, state.reference), all.values);
  }

  /// All columns are summed before any sum is tested: one branch for all of them.
  template <unsigned kColumns, unsigned kRows>
  static __device__ void accumulate_columns(State (&states)[kColumns], const Pack<In, kColumns> (&rows)[kRows],
                                            const Index (&)[kColumns], Index) {
    if (Exp::is_ordinary(states[0].reference)) {  // false in the first tile
      Acc more[kColumns];
      bool is_enough = true;
      unrolled<kColumns>([&](unsigned e) {
        const auto values = tile_values<Acc>(column_of(rows, e).values);
        more[e] = Exp::template sum_above<true>(states[e].reference, values.values);
        is_enough = is_enough & (more[e] <= Exp::kMaxTileSum) &
                    (!Exp::kMayBeHuge || Exp::is_ordinary(states[e].reference));
      });
      if (is_enough) {
        unrolled<kColumns>([&](unsigned e) { states[e].sum += more[e]; });
        return;
      }
    }
    const auto again = launder(rows);
    Pack<In, kColumns> largest = again.values[0];
#pragma unroll
    for (unsigned u = 1; u < kRows; ++u) largest = extremes_of<true>(largest, again.values[u]);
    unrolled<kColumns>([&](unsigned e) {
      accumulate_above(states[e], larger<true>(states[e].reference, convert<Acc>(largest[e])),
                       tile_values<Acc>(column_of(again.values, e).values).values);
    });
  }

  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    const Acc from = Exp::shift(state.reference);
    if constexpr (kSame<Acc, float>) *out = convert<Out>(fmaf(binary_logarithm(state.sum), Exp::kLog2, from));
    else *out = convert<Out>(log(state.sum) + from);
  }

 private:
  /// Adds values that are at most `reference`, which is at least the state's. The initial State is not rescaled.
  template <unsigned kCount>
  static __device__ void accumulate_above(State& state, Acc reference, const Acc (&values)[kCount]) {
    const Acc before = state.sum == Acc(0) ? Acc(0) : Exp::rescaled(state, reference);
    state = {reference, before + Exp::template sum_above<false>(reference, values)};
  }
};

}  // namespace hone
