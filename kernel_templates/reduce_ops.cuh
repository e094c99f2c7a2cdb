// The reductions that map each element to an accumulator and combine those: sums, products, extremes, norms, counts.
//
// All operations take the same template arguments: the element type, the accumulator, the index and whether NaNs are
// ignored. Integer sums and products wrap modulo 2^64.
#pragma once

#include "reduction.cuh"

namespace hone {

// How two accumulators combine.

struct Plus {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::none;
  template <class T> static __device__ T identity() { return T(0); }
  template <class T> static __device__ T combine(T a, T b) {
    if constexpr (kSame<T, long long>)
      return static_cast<long long>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
    else return a + b;
  }
};

struct Times {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::none;
  template <class T> static __device__ T identity() { return T(1); }
  template <class T> static __device__ T combine(T a, T b) {
    if constexpr (kSame<T, long long>)
      return static_cast<long long>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
    else return a * b;
  }
};

template <bool kIgnoreNan>
struct Larger {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::max;
  template <class T> static __device__ T identity() { return lowest<T>(); }
  template <class T> static __device__ T combine(T a, T b) { return larger<kIgnoreNan>(a, b); }
};

template <bool kIgnoreNan>
struct Smaller {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::min;
  template <class T> static __device__ T identity() { return highest<T>(); }
  template <class T> static __device__ T combine(T a, T b) { return smaller<kIgnoreNan>(a, b); }
};

struct Either {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::bit_or;
  template <class T> static __device__ T identity() { return T(0); }
  template <class T> static __device__ T combine(T a, T b) { return a | b; }
};

struct Both {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::bit_and;
  template <class T> static __device__ T identity() { return T(1); }
  template <class T> static __device__ T combine(T a, T b) { return a & b; }
};

// What an element becomes, in at most kWidening times as many bits.

struct Itself {
  static constexpr unsigned kWidening = 1;
  template <class Acc, class In> static __device__ Acc of(In x) { return convert<Acc>(x); }
};

struct Magnitude {
  static constexpr unsigned kWidening = 1;
  template <class Acc, class In> static __device__ Acc of(In x) {
    const Acc y = convert<Acc>(x);
    if constexpr (kSame<Acc, float>) return fabsf(y);
    else if constexpr (kSame<Acc, double>) return fabs(y);
    else if constexpr (kIsSigned<Acc>) return y < 0 ? Plus::combine(Acc(~y), Acc(1)) : y;  // the lowest stays itself
    else return y;
  }
};

struct Square {
  static constexpr unsigned kWidening = 2;
  template <class Acc, class In> static __device__ Acc of(In x) {
    const Acc y = convert<Acc>(x);
    return Times::combine(y, y);
  }
};

struct ProductOfPair {
  static constexpr unsigned kWidening = 2;
  template <class Acc, class In> static __device__ Acc of(Pair<In> x) {
    return Times::combine(convert<Acc>(x.a), convert<Acc>(x.b));
  }
};

/// 1 for what is not zero, NaN included.
struct NonZero {
  static constexpr unsigned kWidening = 1;
  template <class Acc, class In> static __device__ Acc of(In x) { return convert<Bool>(x).byte; }
};

// What is written in the end.

struct Unchanged {
  template <class Acc, class Index> static __device__ Acc of(Acc acc, Index) { return acc; }
};

struct OverCount {
  template <class Acc, class Index> static __device__ auto of(Acc acc, Index n) {
    using Quotient = typename Select<kSame<Acc, float>, float, double>::type;
    return static_cast<Quotient>(acc) / static_cast<Quotient>(n);
  }
};

struct SquareRoot {
  template <class Acc, class Index> static __device__ auto of(Acc acc, Index) {
    if constexpr (kSame<Acc, float>) return sqrtf(acc);
    else return sqrt(static_cast<double>(acc));
  }
};

template <class T>
__device__ bool has_nan(T x) { return is_nan(x); }
template <class T>
__device__ bool has_nan(Pair<T> x) { return is_nan(x.a) || is_nan(x.b); }

template <class Map, class Monoid, class End, class In, class Acc, class Index, bool kIgnoreNan>
struct MapReduce : Reduction<MapReduce<Map, Monoid, End, In, Acc, Index, kIgnoreNan>, In, Acc, Index> {
  static constexpr bool kInWord = kSame<Acc, int> || kSame<Acc, unsigned>;
  static constexpr WarpInstruction kWarpInstruction = kInWord ? Monoid::kWarpInstruction : WarpInstruction::none;

  /// Sums of small integers are made in 32 bits within a pack, which holds at most 16 of them.
  static constexpr bool kIsSmall = kSame<Map, NonZero> || (!kIsFloating<In> && sizeof(In) * Map::kWidening <= 2);
  static constexpr bool kNarrowInPack =
      kIsSmall && kSame<Monoid, Plus> && !kIsFloating<Acc> && sizeof(Acc) == 8 && !kIgnoreNan;

  static __device__ Acc identity() { return Monoid::template identity<Acc>(); }
  static __device__ Acc combine(Acc a, Acc b) { return Monoid::combine(a, b); }

  template <class Element>
  static __device__ Acc of(Element x, Index) {
    if constexpr (kIgnoreNan) {
      if (has_nan(x)) return identity();
    }
    return Map::template of<Acc>(x);
  }

  template <class Element, unsigned kElements>
  static __device__ Acc of_pack(const Pack<Element, kElements>& pack, Index first) {
    if constexpr (kNarrowInPack) return convert<Acc>(narrow_sum(pack));
    else return Reduction<MapReduce, In, Acc, Index>::of_pack(pack, first);
  }

  template <class Out>
  static __device__ void write(Acc acc, Index n, Out* out) { *out = convert<Out>(End::of(acc, n)); }

 private:
  template <class Element, unsigned kElements>
  static __device__ int narrow_sum(const Pack<Element, kElements>& pack) {
    if constexpr (sizeof(Element) == 1 && kElements >= 4 && kSame<Map, Itself> && kIsInteger<Element>) {
      return sum_of_bytes<kElements / 4>(pack);
    } else {
      int sums[kElements];
#pragma unroll
      for (unsigned e = 0; e < kElements; ++e) sums[e] = Map::template of<int>(pack.elements[e]);
      return combine_tree<Plus>(sums);
    }
  }

  /// Four bytes to an instruction.
  template <unsigned kWords>
  static __device__ int sum_of_bytes(const Pack<In, 4 * kWords>& pack) {
    using Word = typename Select<kIsSigned<In>, int, unsigned>::type;
    const auto words = Words<Pack<In, 4 * kWords>>::of(pack);
    Word sum = 0;
#pragma unroll
    for (unsigned w = 0; w < kWords; ++w)
      sum = __dp4a(static_cast<Word>(words.words[w]), static_cast<Word>(0x01010101), sum);
    return static_cast<int>(sum);
  }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
using Sum = MapReduce<Itself, Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Product = MapReduce<Itself, Times, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Min = MapReduce<Itself, Smaller<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Max = MapReduce<Itself, Larger<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using SumOfSquares = MapReduce<Square, Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using L1Norm = MapReduce<Magnitude, Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using L2Norm = MapReduce<Square, Plus, SquareRoot, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
struct MaxNorm : MapReduce<Magnitude, Larger<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan> {
  static __device__ Acc identity() { return Acc(0); }
};
template <class In, class Acc, class Index, bool kIgnoreNan>
using Dot = MapReduce<ProductOfPair, Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Any = MapReduce<NonZero, Either, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using All = MapReduce<NonZero, Both, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using CountNonzero = MapReduce<NonZero, Plus, Unchanged, In, Acc, Index, kIgnoreNan>;

}  // namespace hone
