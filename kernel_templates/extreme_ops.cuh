// The reductions to extremes and where they are: minmax, argmin, argmax.
#pragma once

#include "bytes.cuh"
#include "reduction.cuh"

namespace hone {

template <class Acc>
struct Extremes {
  Acc min, max;
};

template <class In, class Acc, class Index, bool kIgnoreNan>
struct MinMax : Reduction<MinMax<In, Acc, Index, kIgnoreNan>, In, Extremes<Acc>, Index> {
  using State = Extremes<Acc>;

  static __device__ State identity() { return {highest_of<Acc, In>(), lowest_of<Acc, In>()}; }
  static __device__ State combine(State a, State b) {
    return {smaller<kIgnoreNan>(a.min, b.min), larger<kIgnoreNan>(a.max, b.max)};
  }
  static __device__ State of(In x, Index) {
    const Acc y = convert<Acc>(x);
    if (kIgnoreNan && is_nan(y)) return identity();
    return {y, y};
  }
  template <class ElementPack, unsigned kPacks>
  static __device__ void take(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    if constexpr (kInBytes<In, ElementPack>)
      state = combine(state, {convert<Acc>(extreme_of_bytes<false, In>(tile)),
                              convert<Acc>(extreme_of_bytes<true, In>(tile))});
    else Reduction<MinMax, In, State, Index>::take(state, tile, first, stride);
  }
  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    out[0] = convert<Out>(state.min);
    out[1] = convert<Out>(state.max);
  }
};

/// A value and the lowest index at which it stands; the index is all ones where there is no value.
template <class Acc, class Index>
struct Located {
  Words<Acc> value;
  Words<Index> index;
};

/// The index of the value that Order puts first. Only the values of a tile are compared with each other; where the
/// first of them stands is looked up when it comes before all so far, which happens less and less often.
template <class Order, class In, class Acc, class Index, bool kIgnoreNan>
struct ArgReduce : Reduction<ArgReduce<Order, In, Acc, Index, kIgnoreNan>, In, Located<Acc, Index>, Index> {
  using State = Located<Acc, Index>;
  static constexpr Index kNowhere = static_cast<Index>(-1);

  static __device__ State at(Acc value, Index index) { return {Words<Acc>::of(value), Words<Index>::of(index)}; }
  static __device__ State identity() { return at(Order::template last<Acc>(), kNowhere); }

  static __device__ State of(In x, Index i) {
    const Acc value = convert<Acc>(x);
    return kIgnoreNan && is_nan(value) ? identity() : at(value, i);
  }

  static __device__ State combine(State a, State b) {
    const Index of_a = a.index.value();
    const Index of_b = b.index.value();
    if (of_b == kNowhere) return a;
    if (of_a == kNowhere || before(b.value.value(), a.value.value())) return b;
    if (before(a.value.value(), b.value.value())) return a;
    return of_b < of_a ? b : a;
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ void take(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    const Acc value = first_value(tile);
    if (kIgnoreNan && is_nan(value)) return;
    if (!before(value, state.value.value()) && state.index.value() != kNowhere) return;

    state = at(value, lowest_index(value, tile, first, stride));
  }

  /// Bytes have so few values that most are soon found. A lane alone would look up its first of each, and some lane of
  /// the warp always does; together they look up only what no lane has seen. Then `value` is the warp's in all lanes,
  /// and `index` is nowhere in those that do not have it.
  template <class ElementPack, unsigned kPacks>
  static __device__ void take_with_warp(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    if constexpr (kHasWarpInstructions && kInBytes<In, ElementPack>) {
      static_assert(kSame<Acc, int>, "no byte may equal the identity's value");
      const Acc value = first_value(tile);
      const Acc of_warp = Order::first_of_warp(value);
      if (!before(of_warp, state.value.value())) return;
      state = at(of_warp, value == of_warp ? lowest_index(value, tile, first, stride) : kNowhere);
    } else {
      take(state, tile, first, stride);
    }
  }

  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    const Index index = state.index.value();
    *out = index == kNowhere ? static_cast<Out>(-1) : static_cast<Out>(index);
  }

 private:
  /// NaNs, where they count, come before everything.
  static __device__ bool before(Acc a, Acc b) { return Order::before(a, b) || (is_nan(a) && !is_nan(b)); }

  struct FirstOfTwo {
    static __device__ Acc combine(Acc a, Acc b) { return Order::template first<kIgnoreNan>(a, b); }
  };

  template <class ElementPack, unsigned kPacks>
  static __device__ Index lowest_index(Acc value, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    Index index = kNowhere;
#pragma unroll
    for (unsigned u = kPacks; u-- > 0;)
#pragma unroll
      for (unsigned e = ElementPack::kElements; e-- > 0;) {
        const Acc other = convert<Acc>(tile[u][e]);
        if (other == value || (is_nan(other) && is_nan(value))) index = first + u * stride + e;
      }
    return index;
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ Acc first_value(const ElementPack (&tile)[kPacks]) {
    if constexpr (kInBytes<In, ElementPack>) {
      return convert<Acc>(extreme_of_bytes<Order::kDescends, In>(tile));
    } else {
      const TileValues<Acc, ElementPack, kPacks> all(tile);
      return combine_tree<FirstOfTwo, all.kCount>(all.values);
    }
  }
};

struct Descending {
  static constexpr bool kDescends = true;
  template <class T> static __device__ T last() { return lowest<T>(); }
  template <class T> static __device__ bool before(T a, T b) { return a > b; }
  static __device__ int first_of_warp(int value) { return __reduce_max_sync(kFullMask, value); }
  template <bool kIgnoreNan, class T> static __device__ T first(T a, T b) { return larger<kIgnoreNan>(a, b); }
};

struct Ascending {
  static constexpr bool kDescends = false;
  template <class T> static __device__ T last() { return highest<T>(); }
  template <class T> static __device__ bool before(T a, T b) { return a < b; }
  static __device__ int first_of_warp(int value) { return __reduce_min_sync(kFullMask, value); }
  template <bool kIgnoreNan, class T> static __device__ T first(T a, T b) { return smaller<kIgnoreNan>(a, b); }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
using ArgMax = ArgReduce<Descending, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using ArgMin = ArgReduce<Ascending, In, Acc, Index, kIgnoreNan>;

}  // namespace hone
