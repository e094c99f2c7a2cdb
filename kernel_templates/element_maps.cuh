// The maps of a map-reduce, from an element to an accumulator, and the finishers, from an accumulator to a result.
//
// A map has of<Acc>(element); kWidening, the factor by which its results may have more bits than its elements; and
// add_bytes(word, sum), which adds the results for the four 8-bit elements of a word to a sum.
#pragma once

#include "monoids.cuh"
#include "simd.cuh"

namespace hone {

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

// Finishers.

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

}  // namespace hone
