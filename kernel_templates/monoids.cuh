// Monoids, with identities and warp instructions; trees of values; the maps and finishers of map-reduces; ScaledSum.
#pragma once

#include "lanes.cuh"
#include "simd.cuh"

namespace hone {

namespace monoid {

/// The common part of monoids whose identity is a constant.
template <int kIdentity, WarpInstruction kInstruction = WarpInstruction::none>
struct Monoid {
  static constexpr WarpInstruction kWarpInstruction = kInstruction;
  template <class Acc, class In> static __device__ Acc identity() { return Acc(kIdentity); }
};

/// The type to compute in: long long wraps as unsigned integers do.
template <class T> using Wrapping = typename Select<kSame<T, long long>, unsigned long long, T>::type;

struct Plus : Monoid<0> {
  template <class T> static __device__ T combine(T a, T b) { return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b)); }
};
struct Times : Monoid<1> {
  template <class T> static __device__ T combine(T a, T b) { return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b)); }
};

template <bool kLargest, bool kIgnoreNan>
struct Extreme {
  static constexpr WarpInstruction kWarpInstruction = kLargest ? WarpInstruction::max : WarpInstruction::min;
  template <class Acc, class In> static __device__ Acc identity() { return bound_of<!kLargest, Acc, In>(); }
  template <class T> static __device__ T combine(T a, T b) { return extreme<kLargest, kIgnoreNan>(a, b); }
};
template <bool kIgnoreNan> using Max = Extreme<true, kIgnoreNan>;
template <bool kIgnoreNan> using Min = Extreme<false, kIgnoreNan>;

struct BitOr : Monoid<0, WarpInstruction::bit_or> {
  template <class T> static __device__ T combine(T a, T b) { return a | b; }
};
struct BitAnd : Monoid<1, WarpInstruction::bit_and> {
  template <class T> static __device__ T combine(T a, T b) { return a & b; }
};

}  // namespace monoid

/// Combines values[kFirst … kFirst + kCount) in a tree of depth log2(kCount). Recursive: every index is a constant.
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

// The maps of a map-reduce, from an element to an accumulator, and the finishers, from an accumulator to a result.
// A map has of<Acc>(element); kWidening, the factor by which its results may have more bits than its elements; and
// add_bytes(word, sum), which adds the results for the four 8-bit elements of a word to a sum.

struct Identity {
  static constexpr unsigned kWidening = 1;
  template <class Acc, class In> static __device__ Acc of(In x) { return convert<Acc>(x); }
  template <class In> static __device__ int add_bytes(unsigned word, int sum) {
    return add_products<In>(element_word<In>(word), kEachByte, sum);
  }
};

struct Magnitude {
  static constexpr unsigned kWidening = 1;
  template <class Acc, class In> static __device__ Acc of(In x) {
    const Acc y = convert<Acc>(x);
    if constexpr (kIsFloating<Acc>) return fabs(y);
    else if constexpr (kIsSigned<Acc>)
      return y < 0 ? monoid::Plus::combine(Acc(~y), Acc(1)) : y;  // the lowest stays the lowest
    else if constexpr (kIsSigned<In>) return x < 0 ? Acc(0) - y : y;
    else return y;
  }
  template <class In> static __device__ int add_bytes(unsigned word, int sum) {
    if constexpr (!kIsInteger<In> || !kIsSigned<In>) return Identity::add_bytes<In>(word, sum);
    else return Identity::add_bytes<In>(word, sum) - 2 * add_products<In>(word, word >> 7 & kEachByte, 0);
  }
};

struct Square {
  static constexpr unsigned kWidening = 2;
  template <class Acc, class In> static __device__ Acc of(In x) {
    const Acc y = convert<Acc>(x);
    return monoid::Times::combine(y, y);
  }
  template <class In> static __device__ int add_bytes(unsigned word, int sum) {
    return add_products<In>(element_word<In>(word), element_word<In>(word), sum);
  }
};

struct ProductOfPair {
  static constexpr unsigned kWidening = 2;
  template <class Acc, class In> static __device__ Acc of(Pair<In> x) {
    return monoid::Times::combine(convert<Acc>(x.a), convert<Acc>(x.b));
  }
  template <class In> static __device__ int add_bytes(Pair<unsigned> words, int sum) {
    return add_products<In>(element_word<In>(words.a), element_word<In>(words.b), sum);
  }
};

/// 1 if the element is nonzero, NaN included.
struct NonZero {
  static constexpr unsigned kWidening = 1;
  template <class Acc, class In> static __device__ Acc of(In x) { return convert<Bool>(x).byte; }
  template <class In> static __device__ int add_bytes(unsigned word, int sum) {
    return Identity::add_bytes<Bool>(word, sum);
  }
};

/// A finisher that does nothing.
struct Unchanged {
  template <class Acc, class Index> static __device__ Acc of(Acc acc, Index) { return acc; }
};

/// One zero and one NaN: which of several that compare equal an extreme is depends on the order.
struct Unified {
  template <class Acc, class Index> static __device__ Acc of(Acc acc, Index) {
    if constexpr (!kIsFloating<Acc>) return acc;
    else return is_nan(acc) ? quiet_nan<Acc>() : acc + Acc(0);
  }
};

struct OverCount {
  template <class Acc, class Index> static __device__ auto of(Acc acc, Index n) {
    using Quotient = typename Select<kSame<Acc, float>, float, double>::type;
    return static_cast<Quotient>(acc) / static_cast<Quotient>(n);
  }
};

struct SquareRoot {
  template <class Acc, class Index> static __device__ auto of(Acc acc, Index) {
    return sqrt(static_cast<typename Select<kSame<Acc, float>, float, double>::type>(acc));
  }
};

/// A sum of exponentials relative to a reference, which cannot overflow: the monoid of softmax and logsumexp.
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
