// logsumexp: the logarithm of the sum of exponentials, in one pass, without overflow.
//
// Exponentials are summed relative to a reference r, one of the elements seen: Σ exp(x − r). A tile is first summed
// relative to the current reference, without computing its maximum. Only if that sum is large, infinite or NaN does the
// tile's maximum become the reference, and the tile is summed again. Since the reference is an element, the sum is at
// least 1; since no tile adds more than kMaxTileSum, no element is above r + log kMaxTileSum. So log Σ + r is as
// precise as if r were the maximum.
#pragma once

#include "exponential_sum.cuh"
#include "pack_extremes.cuh"

namespace hone {

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

  template <class ElementPack, unsigned kPacks>
  static __device__ void accumulate(State& state, const ElementPack (&tile)[kPacks], Index, Index) {
    if (Exp::is_ordinary(state.reference)) {
      const TileValues<Acc, ElementPack, kPacks> all(tile);
      const Acc more = Exp::template sum_above<true>(state.reference, all.values);
      if (more <= Exp::kMaxTileSum) {
        state.sum += more;
        return;
      }
    }
    const LaunderedPacks again(tile);
    const TileValues<Acc, ElementPack, kPacks> all(again.packs);
    accumulate_above(state, extreme_of<true>(again.packs, state.reference), all.values);
  }

  /// All columns are summed before any sum is tested: one branch for all of them.
  template <unsigned kColumns, unsigned kRows>
  static __device__ void accumulate_columns(State (&states)[kColumns], const Pack<In, kColumns> (&rows)[kRows],
                                            const Index (&)[kColumns], Index) {
    if (Exp::is_ordinary(states[0].reference)) {  // false in the first tile
      Acc more[kColumns];
      bool is_enough = true;
#pragma unroll
      for (unsigned e = 0; e < kColumns; ++e) {
        more[e] = Exp::template sum_above<true>(states[e].reference, column_values(rows, e).values);
        is_enough = is_enough & (more[e] <= Exp::kMaxTileSum) &
                    (!Exp::kMayBeHuge || Exp::is_ordinary(states[e].reference));
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
                       column_values(again.packs, e).values);
  }

  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    const Acc from = Exp::shift(state.reference);
    if constexpr (kSame<Acc, float>) *out = convert<Out>(fmaf(binary_logarithm(state.sum), Exp::kLog2, from));
    else *out = convert<Out>(log(state.sum) + from);
  }

 private:
  template <unsigned kColumns, unsigned kRows>
  static __device__ TileValues<Acc, Pack<In, 1>, kRows> column_values(const Pack<In, kColumns> (&rows)[kRows],
                                                                      unsigned column) {
    return TileValues<Acc, Pack<In, 1>, kRows>(ColumnOf<In, kColumns, kRows>(rows, column).packs);
  }

  /// Adds values, none of which is above `reference`, which is not below the state's. For the initial State the
  /// compiler may omit the rescaling.
  template <unsigned kCount>
  static __device__ void accumulate_above(State& state, Acc reference, const Acc (&values)[kCount]) {
    const Acc before = state.sum == Acc(0) ? Acc(0) : Exp::rescaled(state, reference);
    state = {reference, before + Exp::template sum_above<false>(reference, values)};
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
