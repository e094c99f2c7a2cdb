// Moments in one pass: mean, and mean with variance.
#pragma once

#include "reduce_ops.cuh"

namespace hone {

/// 1 if the element is no NaN.
struct IsNumber {
  static constexpr unsigned kWidening = 1;
  template <class Acc, class In> static __device__ Acc of(In x) { return Acc(is_nan(x) ? 0 : 1); }
};

/// The mean of the floats that are not NaN, which have to be counted.
template <class In, class Acc, class Index>
struct MeanOfNumbers
    : Fused<MapReduce<IsNumber, monoid::Plus, Unchanged, In, Index, Index, false>, Sum<In, Acc, Index, true>> {
  template <class Out>
  static __device__ void write(FusedState<Index, Acc> state, Index, Out* out) {
    *out = convert<Out>(OverCount::of(state.rest.value(), state.first.value()));
  }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
using Mean = typename Select<kIgnoreNan && kIsFloating<In>, MeanOfNumbers<In, Acc, Index>,
                             MapReduce<Identity, monoid::Plus, OverCount, In, Acc, Index, false>>::type;

template <class Acc, class Index>
struct Moments {
  Words<Index> count;
  Words<Acc> pivot;
  Words<Acc> sum;      ///< Σ (x − pivot)
  Words<Acc> squares;  ///< Σ (x − mean)²
};

/// (pivot · count + sum) ÷ count, compensated for the rounding errors of product, sum and quotient: the mean of equal
/// elements is their value, and an exact sum of integers is rounded once.
template <class Acc>
__device__ Acc mean_about_pivot(Acc pivot, Acc sum, Acc count) {
  const Acc product = pivot * count;
  const Acc total = product + sum;
  const Acc of_product = total - sum;
  const Acc lost = fma(pivot, count, -product) + ((product - of_product) + (sum - (total - of_product)));
  const Acc quotient = total / count;
  const Acc rest = fma(-quotient, count, total) + lost;
  return is_nan(rest) ? quotient : quotient + rest / count;  // the rest of an infinite total is NaN
}

/// 1 ÷ count, off by at most an ulp; 1 of 0. It has no branch, unlike the GPU's division, so that several overlap.
template <class Acc>
__device__ Acc reciprocal_of_count(Acc count) {
  const Acc some = larger<true>(count, Acc(1));
#ifndef HONE_HOST_DEVICE
  if constexpr (kSame<Acc, float>) {
    float estimate;  // off by an ulp (PTX ISA, rcp.approx.ftz.f32)
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"(some));
    return fma(estimate, fma(-some, estimate, 1.0f), estimate);
  }
#endif
  return Acc(1) / some;
}

/// Mean and population variance of floats and wide integers. Partials combine by the pairwise update of Chan, Golub and
/// LeVeque (Updating formulae and a pairwise algorithm for computing sample variances, 1979); within a tile, deviations
/// are from the tile's mean. Sums are of differences from a pivot, an element of the tile: the difference of two means
/// far from zero would otherwise cancel to their rounding errors. When two partials combine, the pivot that is nearer
/// to its mean is kept, so that a single outlier does no harm.
template <class In, class Acc, class Index, bool kIgnoreNan>
struct FloatingMoments : Reduction<FloatingMoments<In, Acc, Index, kIgnoreNan>, In, Moments<Acc, Index>, Index> {
  using State = Moments<Acc, Index>;

  static __device__ State identity() { return {Index(0), Acc(0), Acc(0), Acc(0)}; }
  static __device__ State of(In x, Index) {
    const Acc y = convert<Acc>(x);
    const Acc pivot = pivot_at(y);
    return kIgnoreNan && is_nan(y) ? identity() : State{Index(1), pivot, y - pivot, y - y};  // NaN for ±∞ and NaN
  }

  /// Without a branch for partials of no elements, whose count, sum and pivot are 0: every term that they add is 0.
  static __device__ State combine(State a, State b) {
    const Index of_a = a.count, of_b = b.count;
    const Acc count_a = static_cast<Acc>(of_a), count_b = static_cast<Acc>(of_b);
    const Acc mean_a = a.sum * reciprocal_of_count(count_a), mean_b = b.sum * reciprocal_of_count(count_b);
    const Acc between = b.pivot - a.pivot;
    const Acc apart = between + (mean_b - mean_a);
    const Acc weight = count_a * (count_b * reciprocal_of_count(count_a + count_b));
    const bool keeps_a = of_b == 0 || (of_a != 0 && fabs(mean_a) <= fabs(mean_b));
    const Acc moved = keeps_a ? between * count_b : -between * count_a;
    return {of_a + of_b, keeps_a ? a.pivot : b.pivot, a.sum + b.sum + moved,
            a.squares + b.squares + apart * weight * apart};
  }

  template <bool kWithWarp = false, class ElementPack, unsigned kPacks>
  static __device__ void accumulate(State& state, const ElementPack (&tile)[kPacks], Index, Index) {
    constexpr unsigned kCount = kPacks * ElementPack::kElements;
    auto all = tile_values<Acc>(tile);
    auto& values = all.values;
    unsigned numbers = kCount;
    Acc first = values[0];
    if constexpr (kIgnoreNan) {
      unrolled<kCount>([&](unsigned i) {
        if (is_nan(first)) first = values[i];
        if (is_nan(values[i])) --numbers;
      });
      if (numbers == 0) return;
    }
    const Acc pivot = pivot_at(first);
#pragma unroll
    for (Acc& value : values) value -= pivot;
    const auto unless_nan = [](Acc value, Acc term) { return kIgnoreNan && is_nan(value) ? Acc(0) : term; };
    const Acc sum = tree_of<monoid::Plus, kCount>([&](unsigned i) { return unless_nan(values[i], values[i]); });
    const Acc mean = numbers == kCount ? sum * (Acc(1) / Acc(kCount)) : sum / static_cast<Acc>(numbers);
    const Acc squares = tree_of<monoid::Plus, kCount>(
        [&](unsigned i) { return unless_nan(values[i], (values[i] - mean) * (values[i] - mean)); });
    state = combine(state, {Index(numbers), pivot, sum, squares});
  }

  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    const Acc count = static_cast<Acc>(state.count.value());
    out[0] = convert<Out>(mean_about_pivot<Acc>(state.pivot, state.sum, count));
    out[1] = convert<Out>(state.squares / count);
  }

 private:
  /// The pivot for an element: the element, or 0 if it is not finite or if 2^40 times it might overflow.
  static __device__ Acc pivot_at(Acc x) {
    constexpr Acc kMost = kSame<Acc, float> ? Acc(0x1p86) : Acc(0x1p982);
    return fabs(x) <= kMost ? x : Acc(0);
  }
};

struct IntegerSums {
  long long sum;
  unsigned long long squares, carries;  ///< Σx² = squares + 2^64 · carries
};

/// Mean and variance of 8- and 16-bit integers, from exact integer sums of them and of their squares.
template <class In, class Index>
struct IntegerMoments : Reduction<IntegerMoments<In, Index>, In, IntegerSums, Index> {
  using State = IntegerSums;
  using SumOfPack = Sum<In, long long, Index, false>;
  using SquaresOfPack = SumOfSquares<In, unsigned long long, Index, false>;

  static __device__ State identity() { return {0, 0, 0}; }
  /// Sums wrap: the gaps between the states of columns in shared memory hold anything.
  static __device__ State combine(State a, State b) {
    const unsigned long long sum = static_cast<unsigned long long>(a.sum) + static_cast<unsigned long long>(b.sum);
    const unsigned long long squares = a.squares + b.squares;
    return {static_cast<long long>(sum), squares, a.carries + b.carries + (squares < a.squares ? 1 : 0)};
  }
  static __device__ State of(In x, Index i) { return {SumOfPack::of(x, i), SquaresOfPack::of(x, i), 0}; }

  template <bool kWithWarp = false>
  static __device__ void accumulate(State& state, const auto& tile, Index first, Index stride) {
    State of_tile = identity();
    SumOfPack::accumulate(of_tile.sum, tile, first, stride);
    SquaresOfPack::accumulate(of_tile.squares, tile, first, stride);
    state = combine(state, of_tile);
  }

  /// n² · variance = n · Σx² − (Σx)², modulo 2^128, rounded only in the last step.
  template <class Out>
  static __device__ void write(State state, Index n, Out* out) {
    const auto magnitude = static_cast<unsigned long long>(state.sum < 0 ? -state.sum : state.sum);
    const unsigned long long times_n = state.squares * n, square = magnitude * magnitude;
    const unsigned long long high = __umul64hi(state.squares, n) + state.carries * n -
                                    __umul64hi(magnitude, magnitude) - (times_n < square ? 1 : 0);
    const double difference = static_cast<double>(high) * 0x1p64 + static_cast<double>(times_n - square);
    const double count = static_cast<double>(n);
    out[0] = convert<Out>(static_cast<double>(state.sum) / count);
    out[1] = convert<Out>(difference / count / count);
  }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
using MeanVariance = typename Select<!kIsFloating<In> && sizeof(In) <= 2, IntegerMoments<In, Index>,
                                     FloatingMoments<In, Acc, Index, kIgnoreNan>>::type;

}  // namespace hone
