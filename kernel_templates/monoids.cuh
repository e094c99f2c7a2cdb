// Monoids: how two accumulators combine, with the identity and the warp instruction of each; and trees of values.
#pragma once

#include "lanes.cuh"

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

// ScaledSum: a sum of exponentials relative to a reference, which cannot overflow: the monoid of softmax and logsumexp.

template <class Acc>
struct ScaledSum {
  Acc reference;  ///< one of the elements, or −∞; never NaN
  Acc sum;        ///< Σ exponential(element − reference); NaN, ∞ or 0 for special elements
};

/// How States combine, as an Op of Combine. The arithmetic of exponentials is Exponent's, which derives from this: its
/// rescaled(state, reference) is the sum of `state` relative to a reference that is not below the state's own.
template <class Acc, class Exponent>
struct ScaledSumMonoid {
  using State = ScaledSum<Acc>;

  static __device__ State identity() { return {lowest<Acc>(), Acc(0)}; }

  __device__ State combine(State a, State b) const {
    const bool b_is_above = b.reference > a.reference;
    const State above = b_is_above ? b : a;
    const State below = b_is_above ? a : b;
    return {above.reference, above.sum + exponent().rescaled(below, above.reference)};
  }

  /// Combines the States of each kLanes neighbouring lanes, or of those among them that are equal modulo kStride. The
  /// lanes agree on the reference first; then each rescales once.
  template <unsigned kLanes, unsigned kStride = 1>
  __device__ State in_all_lanes(State state) const {
    if constexpr (kLanes == kStride) return state;
    Acc reference = state.reference;
#pragma unroll
    for (unsigned mask = kLanes / 2; mask >= kStride; mask /= 2)
      reference = larger<true>(reference, shuffle_xor(reference, mask));
    Acc sum = exponent().rescaled(state, reference);
#pragma unroll
    for (unsigned mask = kLanes / 2; mask >= kStride; mask /= 2) sum += shuffle_xor(sum, mask);
    return {reference, sum};
  }

 private:
  __device__ const Exponent& exponent() const { return static_cast<const Exponent&>(*this); }
};

}  // namespace hone
