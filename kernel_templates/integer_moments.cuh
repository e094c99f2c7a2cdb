// Mean and variance of 8- and 16-bit integers, from an exact integer sum and an exact integer sum of squares.
#pragma once

#include "reduce_ops.cuh"

namespace hone {

/// Unsigned arithmetic modulo 2^128: the operations that are needed here.
struct Wide {
  unsigned long long low, high;

  static __device__ Wide product(unsigned long long a, unsigned long long b) { return {a * b, __umul64hi(a, b)}; }
  __device__ Wide plus(Wide other) const {
    const unsigned long long sum = low + other.low;
    return {sum, high + other.high + (sum < low ? 1 : 0)};
  }
  __device__ Wide minus(Wide other) const {
    return {low - other.low, high - other.high - (low < other.low ? 1 : 0)};
  }
  __device__ Wide times(unsigned long long factor) const {
    const Wide of_low = product(low, factor);
    return {of_low.low, of_low.high + high * factor};
  }
  __device__ double to_double() const { return static_cast<double>(high) * 0x1p64 + static_cast<double>(low); }
};

struct IntegerSums {
  long long sum;
  Wide squares;
};

template <class In, class Index>
struct IntegerMoments : Reduction<IntegerMoments<In, Index>, In, IntegerSums, Index> {
  using State = IntegerSums;
  using SumOfPack = Sum<In, long long, Index, false>;
  using SquaresOfPack = SumOfSquares<In, unsigned long long, Index, false>;

  static __device__ State identity() { return {0, {0, 0}}; }
  static __device__ State combine(State a, State b) { return {a.sum + b.sum, a.squares.plus(b.squares)}; }
  static __device__ State of(In x, Index i) { return {SumOfPack::of(x, i), {SquaresOfPack::of(x, i), 0}}; }

  template <class ElementPack, unsigned kPacks>
  static __device__ void accumulate(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    unsigned long long squares = 0;
    SumOfPack::accumulate(state.sum, tile, first, stride);
    SquaresOfPack::accumulate(squares, tile, first, stride);
    state.squares = state.squares.plus({squares, 0});
  }

  /// n² · variance = n · Σx² − (Σx)², rounded only in the last step.
  template <class Out>
  static __device__ void write(State state, Index n, Out* out) {
    const auto magnitude = static_cast<unsigned long long>(state.sum < 0 ? -state.sum : state.sum);
    const double count = static_cast<double>(n);
    out[0] = convert<Out>(static_cast<double>(state.sum) / count);
    out[1] =
        convert<Out>(state.squares.times(n).minus(Wide::product(magnitude, magnitude)).to_double() / count / count);
  }
};

}  // namespace hone
