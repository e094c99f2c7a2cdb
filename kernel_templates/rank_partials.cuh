// How the partials of two ranks combine, for each operation: their State, where it is in a rank's block, the result.
//
// Floats are combined in double, integers in 64 bits, which wrap as those of the local reductions do. Reproducible
// results are those of combine_shards.cuh.
#pragma once

#include "combine_arguments.h"
#include "monoids.cuh"

namespace hone {

/// The type in which partials of a type are combined.
template <class Value>
using WideOf =
    typename Select<kIsFloating<Value>, double,
                    typename Select<kIsSigned<Value>, long long, unsigned long long>::type>::type;

/// The block of a rank.
template <class Value>
struct RankBlock {
  const char* block;
  const CombineArguments& all;

  template <class T>
  __device__ T at(unsigned long long offset, unsigned long long i) const {
    return reinterpret_cast<const T*>(block + offset)[i];
  }
  __device__ WideOf<Value> value(unsigned long long i) const { return convert<WideOf<Value>>(at<Value>(0, i)); }
  __device__ long long index(unsigned long long row) const { return at<long long>(all.index_at, row); }
  __device__ long long count() const { return at<long long>(all.count_at, 0); }
};

namespace combined {

/// One value a row.
template <class Value, class By, bool kSquareRoot = false>
struct Scalar {
  using In = Value;
  struct State { WideOf<Value> value; };
  static __device__ State load(const RankBlock<Value>& rank, unsigned long long row) {
    return {rank.value(row)};
  }
  static __device__ State combine(State a, State b) { return {By::combine(a.value, b.value)}; }
  template <class Out>
  static __device__ void write(State state, Out* out) {
    if constexpr (kSquareRoot) *out = convert<Out>(sqrt(static_cast<double>(state.value)));
    else *out = convert<Out>(state.value);
  }
};

/// Σ and the number of its terms.
template <class Value>
struct Mean {
  using In = Value;
  struct State { WideOf<Value> sum; long long count; };
  static __device__ State load(const RankBlock<Value>& rank, unsigned long long row) {
    return {rank.value(row), rank.count()};
  }
  static __device__ State combine(State a, State b) {
    return {monoid::Plus::combine(a.sum, b.sum), a.count + b.count};
  }
  template <class Out>
  static __device__ void write(State state, Out* out) {
    *out = convert<Out>(static_cast<double>(state.sum) / static_cast<double>(state.count));
  }
};

/// Means and variances, by the pairwise update of Chan, Golub and LeVeque (moment_ops.cuh). A rank without elements has
/// no mean.
template <class Value>
struct Moments {
  using In = Value;
  struct State { double count, mean, squares; };
  static __device__ State load(const RankBlock<Value>& rank, unsigned long long row) {
    const double count = static_cast<double>(rank.count());
    if (count == 0) return {0, 0, 0};
    return {count, rank.value(2 * row), rank.value(2 * row + 1) * count};
  }
  static __device__ State combine(State a, State b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const double count = a.count + b.count, apart = b.mean - a.mean;
    const double between = apart * apart * (a.count * b.count / count);
    // Not a.mean + apart · …, which is NaN where one mean is infinite.
    return {count, a.mean * (a.count / count) + b.mean * (b.count / count), a.squares + b.squares + between};
  }
  template <class Out>
  static __device__ void write(State state, Out* out) {
    const double variance = state.squares / state.count;
    out[0] = convert<Out>(state.count == 0 ? variance : state.mean);  // NaN
    out[1] = convert<Out>(variance);
  }
};

/// Two values a row: the smallest and the largest element.
template <class Value, bool kIgnoreNan, bool kDifference>
struct Extremes {
  using In = Value;
  struct State { WideOf<Value> min, max; };
  static __device__ State load(const RankBlock<Value>& rank, unsigned long long row) {
    return {rank.value(2 * row), rank.value(2 * row + 1)};
  }
  static __device__ State combine(State a, State b) {
    return {smaller<kIgnoreNan>(a.min, b.min), larger<kIgnoreNan>(a.max, b.max)};
  }
  template <class Out>
  static __device__ void write(State state, Out* out) {
    if constexpr (kDifference) {
      // Integers are subtracted modulo 2^64, where the range fits; of no elements it is 0.
      using Wide = typename Select<kIsFloating<Value>, double, unsigned long long>::type;
      const Wide range = static_cast<Wide>(state.max) - static_cast<Wide>(state.min);
      *out = convert<Out>(state.max < state.min ? Wide(0) : range);
    } else {
      out[0] = convert<Out>(state.min);
      out[1] = convert<Out>(state.max);
    }
  }
};

/// An element and its index. Indices count on from rank to rank; −1 is that of none.
template <class Value, bool kLargest>
struct Located {
  using In = Value;
  struct State { WideOf<Value> value; long long index, count; };
  static __device__ State load(const RankBlock<Value>& rank, unsigned long long row) {
    const long long index = rank.index(row);
    return {index < 0 ? WideOf<Value>(0) : rank.value(row), index, rank.count()};
  }
  static __device__ State combine(State a, State b) {
    const bool takes_b = a.index < 0 || (b.index >= 0 && is_beyond(b.value, a.value));
    const long long count = a.count + b.count;
    if (takes_b && b.index >= 0) return {b.value, b.index + a.count, count};
    return {a.value, a.index, count};
  }
  template <class Out>
  static __device__ void write(State state, Out* out) { *out = convert<Out>(state.index); }

 private:
  /// The first NaN wins; a rank that ignores NaNs does not locate one.
  static __device__ bool is_beyond(WideOf<Value> b, WideOf<Value> a) {
    if (is_nan(a)) return false;
    return is_nan(b) || (kLargest ? b > a : b < a);
  }
};

/// log Σ exp of each rank, as a sum relative to the largest of them. NaN is a sum, so that it is no largest one.
template <class Value>
struct LogSumExp {
  using In = Value;
  struct State { double reference, sum; };
  static __device__ State load(const RankBlock<Value>& rank, unsigned long long row) {
    const double value = rank.value(row);
    if (is_nan(value)) return {lowest<double>(), value};
    return {value, 1};
  }
  static __device__ State combine(State a, State b) {
    const double reference = larger<true>(a.reference, b.reference);
    return {reference, rescaled(a, reference) + rescaled(b, reference)};
  }
  template <class Out>
  static __device__ void write(State state, Out* out) { *out = convert<Out>(state.reference + log(state.sum)); }

 private:
  static __device__ double rescaled(State state, double reference) {
    return state.reference == reference ? state.sum : state.sum * exp(state.reference - reference);
  }
};

}  // namespace combined

}  // namespace hone
