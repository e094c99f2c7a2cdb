// The reductions that map each element to an accumulator and combine those: sums, products, extremes, norms, counts.
//
// All operations take the same template arguments: the element type, the accumulator, the index and whether NaNs are
// ignored. Integer sums and products wrap modulo 2^64.
#pragma once

#include "bytes.cuh"
#include "reduction.cuh"

namespace hone {

/// How two accumulators combine.
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

template <bool kIgnoreNan>
struct Max {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::max;
  template <class Acc, class In> static __device__ Acc identity() { return lowest_of<Acc, In>(); }
  template <class T> static __device__ T combine(T a, T b) { return larger<kIgnoreNan>(a, b); }
};

template <bool kIgnoreNan>
struct Min {
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::min;
  template <class Acc, class In> static __device__ Acc identity() { return highest_of<Acc, In>(); }
  template <class T> static __device__ T combine(T a, T b) { return smaller<kIgnoreNan>(a, b); }
};

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

// What an element becomes, in at most kWidening times as many bits; and what the sum over four 8-bit elements becomes.

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
    if constexpr (kSame<Acc, float>) return fabsf(y);
    else if constexpr (kSame<Acc, double>) return fabs(y);
    else if constexpr (kIsSigned<Acc>)
      return y < 0 ? monoid::Plus::combine(Acc(~y), Acc(1)) : y;  // the lowest stays itself
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

/// 1 for what is not zero, NaN included.
struct NonZero {
  static constexpr unsigned kWidening = 1;
  template <class Acc, class In> static __device__ Acc of(In x) { return convert<Bool>(x).byte; }
  template <class In> static __device__ int add_bytes(unsigned word, int sum) {
    return Identity::add_bytes<Bool>(word, sum);
  }
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
  static constexpr bool kIdempotent = !kSame<Monoid, monoid::Plus> && !kSame<Monoid, monoid::Times>;

  /// Sums of small integers are made in 32 bits within a pack, which holds at most 16 of them, and products as far as
  /// 32 bits hold them.
  static constexpr bool kWideInteger = !kIsFloating<Acc> && sizeof(Acc) == 8 && !kIgnoreNan;
  static constexpr bool kNarrowSums = kWideInteger && kSame<Monoid, monoid::Plus> &&
                                      (kSame<Map, NonZero> || (!kIsFloating<In> && sizeof(In) * Map::kWidening <= 2));
  static constexpr unsigned kNarrowProducts =
      kWideInteger && kSame<Monoid, monoid::Times> && !kIsFloating<In> && sizeof(In) <= 2 ? 4 / sizeof(In) : 1;

  /// Truth and extremes of bytes are found for four at a time.
  static constexpr bool kTruth =
      (kSame<Map, NonZero> && !kSame<Monoid, monoid::Plus>) || (kSame<In, Bool> && kSame<Monoid, monoid::Times>);
  static constexpr bool kExtreme = kIdempotent && !kSame<Map, NonZero>;

  static __device__ Acc identity() { return Monoid::template identity<Acc, In>(); }
  static __device__ Acc combine(Acc a, Acc b) { return Monoid::combine(a, b); }

  template <class Element>
  static __device__ Acc of(Element x, Index) {
    if constexpr (kIgnoreNan) {
      if (has_nan(x)) return identity();
    }
    return Map::template of<Acc>(x);
  }

  template <class ElementPack>
  static __device__ Acc of_pack(const ElementPack& pack, Index first) {
    if constexpr (kNarrowSums) {
      return convert<Acc>(narrow_sum(pack));
    } else if constexpr (ElementPack::kElements % kNarrowProducts == 0 && kNarrowProducts > 1) {
      constexpr unsigned kGroups = ElementPack::kElements / kNarrowProducts;
      Acc groups[kGroups];
#pragma unroll
      for (unsigned g = 0; g < kGroups; ++g) groups[g] = convert<Acc>(narrow_product(pack, g));
      return combine_tree<MapReduce, kGroups>(groups);
    } else {
      return Base::of_pack(pack, first);
    }
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ void accumulate(Acc& acc, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    if constexpr (kTruth && kInBytes<In, ElementPack>) {
      acc = combine(acc, Acc(truth_of_bytes<!kSame<Monoid, monoid::BitOr>>(tile)));
    } else if constexpr (kExtreme && kInBytes<In, ElementPack>) {
      constexpr bool kLargest = kSame<Monoid, monoid::Max<kIgnoreNan>>;
      Acc extreme = convert<Acc>(extreme_of_bytes<kLargest, In>(tile));
      // −x is ~x + 1: ptxas 12.8 to 13.3 make one instruction of the maximum of three numbers and forget to negate one
      // of them (pytorch issue 190973).
      if constexpr (kSame<Map, Magnitude> && kIsSigned<Acc>)
        extreme = combine(extreme - 1, convert<Acc>(~extreme_of_bytes<false, In>(tile))) + 1;
      acc = combine(acc, extreme);
    } else if constexpr (kNarrowSums && ElementPack::kElements == 1) {  // a column: what a pack is elsewhere is its
                                                                        // tile
      static_assert(kPacks <= 16);
      int sums[kPacks];
#pragma unroll
      for (unsigned u = 0; u < kPacks; ++u) sums[u] = Map::template of<int>(tile[u][0]);
      acc = combine(acc, convert<Acc>(combine_tree<monoid::Plus, kPacks>(sums)));
    } else {
      Base::accumulate(acc, tile, first, stride);
    }
  }

  template <class Out>
  static __device__ void write(Acc acc, Index n, Out* out) { *out = convert<Out>(End::of(acc, n)); }

 private:
  using Base = Reduction<MapReduce, In, Acc, Index>;

  template <class ElementPack>
  static __device__ int narrow_sum(const ElementPack& pack) {
    if constexpr (kInBytes<In, ElementPack>) {
      int sum = 0;
#pragma unroll
      for (unsigned w = 0; w < ElementPack::kElements / 4; ++w) sum = Map::template add_bytes<In>(word(pack, w), sum);
      return sum;
    } else {
      int sums[ElementPack::kElements];
#pragma unroll
      for (unsigned e = 0; e < ElementPack::kElements; ++e) sums[e] = Map::template of<int>(pack[e]);
      return combine_tree<monoid::Plus, ElementPack::kElements>(sums);
    }
  }

  /// Of group g of kNarrowProducts elements, widened by its own sign.
  template <class ElementPack>
  static __device__ auto narrow_product(const ElementPack& pack, unsigned g) {
    using Word = typename Select<kIsSigned<In>, int, unsigned>::type;
    if constexpr (kInBytes<In, ElementPack> && kIsInteger<In>) {
      return static_cast<Word>(product_of_bytes<In>(word(pack, g)));
    } else {
      Word product = 1;
#pragma unroll
      for (unsigned e = 0; e < kNarrowProducts; ++e) product *= convert<Word>(pack[g * kNarrowProducts + e]);
      return product;
    }
  }

  template <unsigned kElements>
  static __device__ unsigned word(const Pack<In, kElements>& pack, unsigned w) {
    return pack.parts[w];
  }
  template <unsigned kElements>
  static __device__ Pair<unsigned> word(const PairPack<In, kElements>& pack, unsigned w) {
    return {word(pack.a, w), word(pack.b, w)};
  }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
using Sum = MapReduce<Identity, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Product = MapReduce<Identity, monoid::Times, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Min = MapReduce<Identity, monoid::Min<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Max = MapReduce<Identity, monoid::Max<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using SumOfSquares = MapReduce<Square, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using L1Norm = MapReduce<Magnitude, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using L2Norm = MapReduce<Square, monoid::Plus, SquareRoot, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
struct MaxNorm : MapReduce<Magnitude, monoid::Max<kIgnoreNan>, Unchanged, In, Acc, Index, kIgnoreNan> {
  static __device__ Acc identity() { return Acc(0); }
};
template <class In, class Acc, class Index, bool kIgnoreNan>
using Dot = MapReduce<ProductOfPair, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using Any = MapReduce<NonZero, monoid::BitOr, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using All = MapReduce<NonZero, monoid::BitAnd, Unchanged, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using CountNonzero = MapReduce<NonZero, monoid::Plus, Unchanged, In, Acc, Index, kIgnoreNan>;

}  // namespace hone
