// The reductions to moments in one pass: mean, mean with variance, and logsumexp.
#pragma once

#include "integer_moments.cuh"
#include "reduce_ops.cuh"

namespace hone {

template <class Acc, class Index>
struct CountedSum {
  Words<Index> count;
  Words<Acc> sum;
};

/// The mean of what is not NaN, which must be counted.
template <class In, class Acc, class Index>
struct MeanOfNumbers : Reduction<MeanOfNumbers<In, Acc, Index>, In, CountedSum<Acc, Index>, Index> {
  using State = CountedSum<Acc, Index>;

  static __device__ State of_counted(Index count, Acc sum) { return {Words<Index>::of(count), Words<Acc>::of(sum)}; }
  static __device__ State identity() { return of_counted(0, Acc(0)); }
  static __device__ State combine(State a, State b) {
    return of_counted(a.count.value() + b.count.value(), Plus::combine(a.sum.value(), b.sum.value()));
  }
  static __device__ State of(In x, Index) { return is_nan(x) ? identity() : of_counted(1, convert<Acc>(x)); }
  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    *out = convert<Out>(OverCount::of(state.sum.value(), state.count.value()));
  }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
using Mean = typename Select<kIgnoreNan, MeanOfNumbers<In, Acc, Index>,
                             MapReduce<Itself, Plus, OverCount, In, Acc, Index, false>>::type;

template <class Acc, class Index>
struct Moments {
  Words<Index> count;
  Words<Acc> sum;
  Words<Acc> squares;  ///< Σ (x − mean)²
};

/// Mean and population variance of floats and wide integers. Two sets of elements combine as Chan, Golub and LeVeque do
/// (Updating formulae and a pairwise algorithm for computing sample variances, 1979), which loses nothing to a mean
/// that is far from zero; the deviations of a tile are taken from the tile's own mean.
template <class In, class Acc, class Index, bool kIgnoreNan>
struct FloatingMoments : Reduction<FloatingMoments<In, Acc, Index, kIgnoreNan>, In, Moments<Acc, Index>, Index> {
  using State = Moments<Acc, Index>;

  static __device__ State of_moments(Index count, Acc sum, Acc squares) {
    return {Words<Index>::of(count), Words<Acc>::of(sum), Words<Acc>::of(squares)};
  }
  static __device__ State identity() { return of_moments(0, Acc(0), Acc(0)); }
  static __device__ State of(In x, Index) {
    const Acc y = convert<Acc>(x);
    return kIgnoreNan && is_nan(y) ? identity() : of_moments(1, y, y - y);  // NaN for what has no spread
  }

  static __device__ State combine(State a, State b) {
    const Index of_a = a.count.value();
    const Index of_b = b.count.value();
    if (of_a == 0) return b;
    if (of_b == 0) return a;
    const Acc count_a = static_cast<Acc>(of_a);
    const Acc count_b = static_cast<Acc>(of_b);
    const Acc apart = b.sum.value() / count_b - a.sum.value() / count_a;
    const Acc weight = count_a * (count_b / (count_a + count_b));
    return of_moments(of_a + of_b, a.sum.value() + b.sum.value(),
                      a.squares.value() + b.squares.value() + apart * apart * weight);
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ void take(State& state, const ElementPack (&tile)[kPacks], Index, Index) {
    TileValues<Acc, ElementPack, kPacks> all(tile);
    constexpr unsigned kCount = all.kCount;
    unsigned numbers = kCount;
    if constexpr (kIgnoreNan) {
#pragma unroll
      for (unsigned i = 0; i < kCount; ++i)
        if (is_nan(all.values[i])) --numbers;
      if (numbers == 0) return;
    }
    Acc terms[kCount];
#pragma unroll
    for (unsigned i = 0; i < kCount; ++i) terms[i] = kIgnoreNan && is_nan(all.values[i]) ? Acc(0) : all.values[i];
    const Acc sum = combine_tree<Plus, kCount>(terms);
    const Acc mean = numbers == kCount ? sum * (Acc(1) / Acc(kCount)) : sum / static_cast<Acc>(numbers);
#pragma unroll
    for (unsigned i = 0; i < kCount; ++i) {
      const Acc deviation = all.values[i] - mean;
      terms[i] = kIgnoreNan && is_nan(all.values[i]) ? Acc(0) : deviation * deviation;
    }
    state = combine(state, of_moments(numbers, sum, combine_tree<Plus, kCount>(terms)));
  }

  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    const Acc count = static_cast<Acc>(state.count.value());
    out[0] = convert<Out>(state.sum.value() / count);
    out[1] = convert<Out>(state.squares.value() / count);
  }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
using MeanVariance = typename Select<!kIsFloating<In> && sizeof(In) <= 2, IntegerMoments<In, Index>,
                                     FloatingMoments<In, Acc, Index, kIgnoreNan>>::type;

template <class Acc>
struct ScaledSum {
  Acc max;
  Acc sum;  ///< Σ exp(x − max)
};

/// log Σ exp(x), relative to the largest x so far, so that nothing overflows.
template <class In, class Acc, class Index, bool kIgnoreNan>
struct LogSumExp : Reduction<LogSumExp<In, Acc, Index, kIgnoreNan>, In, ScaledSum<Acc>, Index> {
  using State = ScaledSum<Acc>;

  static __device__ State identity() { return {lowest<Acc>(), Acc(0)}; }
  static __device__ State of(In x, Index) {
    const Acc y = convert<Acc>(x);
    if (kIgnoreNan && is_nan(y)) return identity();
    return {y, exponential(y - shift(y))};
  }
  static __device__ State combine(State a, State b) {
    const Acc max = larger<false>(a.max, b.max);
    return {max, scaled(a, max) + scaled(b, max)};
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ void take(State& state, const ElementPack (&tile)[kPacks], Index, Index) {
    TileValues<Acc, ElementPack, kPacks> all(tile);
    constexpr unsigned kCount = all.kCount;
    if constexpr (kIgnoreNan) {
#pragma unroll
      for (unsigned i = 0; i < kCount; ++i)  // adds as much as −∞ does: nothing
        if (is_nan(all.values[i])) all.values[i] = lowest<Acc>();
    }
    const Acc max = larger<false>(state.max, combine_tree<Larger<false>, kCount>(all.values));
    const Acc from = shift(max);
#pragma unroll
    for (unsigned i = 0; i < kCount; ++i) all.values[i] = exponential_above(from, all.values[i]);
    state = {max, scaled(state, max) + combine_tree<Plus, kCount>(all.values)};
  }

  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    *out = convert<Out>(natural_logarithm(state.sum) + shift(state.max));
  }

 private:
  /// What is subtracted before the exponential: the largest element, unless a difference from it would be NaN.
  static __device__ Acc shift(Acc max) { return max > lowest<Acc>() && max < highest<Acc>() ? max : Acc(0); }

  static __device__ Acc scaled(State state, Acc max) {
    if (state.max == max || state.sum == Acc(0)) return state.sum;
    return state.sum * exponential(shift(state.max) - shift(max));
  }

  /// Where a float's result is subnormal, 0: next to a sum of at least 1 it is nothing.
  static __device__ Acc exponential(Acc x) {
    if constexpr (kSame<Acc, float>) return power_of_two(x * kLog2OfE);
    else return exp(x);
  }

  /// exp(x − from) in one multiplication and addition: rounding from · log₂ e is as if `from` were off by its last bit,
  /// and the same for every x.
  static __device__ Acc exponential_above(Acc from, Acc x) {
    if constexpr (kSame<Acc, float>) return power_of_two(fmaf(x, kLog2OfE, -from * kLog2OfE));
    else return exp(x - from);
  }

  static constexpr float kLog2OfE = 1.44269504f;
};

}  // namespace hone
