// The reductions to moments in one pass: mean, and mean with variance.
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

}  // namespace hone
