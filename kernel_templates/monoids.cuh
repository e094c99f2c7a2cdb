// Monoids: how two accumulators combine, with the identity and the warp instruction of each; and trees of values.
#pragma once

#include "lanes.cuh"
#include "scalars.cuh"

namespace hone {

namespace monoid {

struct Plus {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::none;
  template <class Acc, class In> static __device__ Acc identity() { return Acc(0); }
  template <class T> static __device__ T combine(T a, T b) {
    if constexpr (kSame<T, long long>)
      return static_cast<long long>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
    else return a + b;
  }
};

struct Times {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::none;
  template <class Acc, class In> static __device__ Acc identity() { return Acc(1); }
  template <class T> static __device__ T combine(T a, T b) {
    if constexpr (kSame<T, long long>)
      return static_cast<long long>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
    else return a * b;
  }
};

template <bool kLargest, bool kIgnoreNan>
struct Extreme {
  static constexpr WarpInstruction kWarpInstruction = kLargest ? WarpInstruction::max : WarpInstruction::min;
  template <class Acc, class In> static __device__ Acc identity() { return bound_of<!kLargest, Acc, In>(); }
  template <class T> static __device__ T combine(T a, T b) { return extreme<kLargest, kIgnoreNan>(a, b); }
};
template <bool kIgnoreNan>
using Max = Extreme<true, kIgnoreNan>;
template <bool kIgnoreNan>
using Min = Extreme<false, kIgnoreNan>;

struct BitOr {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::bit_or;
  template <class Acc, class In> static __device__ Acc identity() { return Acc(0); }
  template <class T> static __device__ T combine(T a, T b) { return a | b; }
};

struct BitAnd {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::bit_and;
  template <class Acc, class In> static __device__ Acc identity() { return Acc(1); }
  template <class T> static __device__ T combine(T a, T b) { return a & b; }
};

}  // namespace monoid

/// Combines values[kFirst … kFirst + kCount) in a tree of depth log2(kCount). Recursive, so that every index is a
/// constant and the values stay in registers.
template <class Op, unsigned kCount, unsigned kFirst = 0, class T, unsigned kAll>
__device__ T combine_tree(const T (&values)[kAll]) {
  if constexpr (kCount == 1) return values[kFirst];
  else return Op::combine(combine_tree<Op, kCount / 2, kFirst>(values),
                          combine_tree<Op, kCount - kCount / 2, kFirst + kCount / 2>(values));
}

/// The same of value(0) … value(kCount − 1), all of which are computed first.
template <class Op, unsigned kCount, class Value>
__device__ auto tree_of(const Value& value) {
  return combine_tree<Op, kCount>(Array<decltype(value(0u)), kCount>(value).values);
}

}  // namespace hone
