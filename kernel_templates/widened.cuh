// Widened: an operation whose elements are stored in a type T that is too narrow to compute with.
//
// T::Wide is the type that the operation computes on; it has every value of T. T::wide_pair() converts two elements at
// once, in one instruction where the GPU has it. So packs are converted as a whole before the operation sees them.
#pragma once

#include "pack.cuh"

namespace hone {

template <class T>
__device__ typename T::Wide widened(T x) { return x.wide(); }
template <class T>
__device__ Pair<typename T::Wide> widened(Pair<T> x) { return {widened(x.a), widened(x.b)}; }

template <class T, unsigned kElements>
__device__ Pack<typename T::Wide, kElements> widened(const Pack<T, kElements>& pack) {
  using WidePack = Pack<typename T::Wide, kElements>;
  if constexpr (kElements % 2 == 1) {
    return WidePack::of([&](unsigned e) { return widened(pack[e]); });
  } else {
    WidePack wide;
#pragma unroll
    for (unsigned e = 0; e < kElements; e += 2) {
      unsigned short pair;
      memcpy(&pair, reinterpret_cast<const char*>(pack.parts) + e * sizeof(T), sizeof(pair));
      wide.parts[e / 2] = T::wide_pair(pair);
    }
    return wide;
  }
}

template <class T, unsigned kElements>
__device__ PairPack<typename T::Wide, kElements> widened(const PairPack<T, kElements>& pack) {
  return {widened(pack.a), widened(pack.b)};
}

template <class ElementPack, unsigned kPacks>
__device__ auto widened(const ElementPack (&tile)[kPacks]) {
  return Array<decltype(widened(tile[0])), kPacks>([&](unsigned p) { return widened(tile[p]); });
}

template <class Op, class T>
struct Widened : Op {
  using In = T;
  using State = typename Op::State;
  using Index = typename Op::Index;
  static constexpr bool kHasNeutral = false;  ///< neutral() need not be a value of T

  static __device__ State of(auto x, Index i) { return Op::of(widened(x), i); }
  template <bool kWithWarp = false>
  static __device__ void accumulate(State& state, const auto& tile, Index first, Index stride) {
    Op::template accumulate<kWithWarp>(state, widened(tile).values, first, stride);
  }
  static __device__ void accumulate_columns(auto& states, const auto& rows, const auto& first, Index stride) {
    Op::accumulate_columns(states, widened(rows).values, first, stride);
  }
};

/// An operation that needs no other type for its elements is itself.
template <template <class, class, class, bool> class Op, class In, class Acc, class Index, bool kIgnoreNan>
struct OperationOn {
  using type = Op<In, Acc, Index, kIgnoreNan>;
};
template <template <class, class, class, bool> class Op, class In, class Acc, class Index, bool kIgnoreNan>
  requires requires { typename In::Wide; }
struct OperationOn<Op, In, Acc, Index, kIgnoreNan> {
  using type = Widened<Op<typename In::Wide, Acc, Index, kIgnoreNan>, In>;
};

}  // namespace hone
