// Sums, products, extremes, norms and counts: elements are mapped to accumulators, combined by a monoid and finished.
#pragma once

#include "reduction.cuh"

namespace hone {

template <class Map, class Monoid, class End, class In, class Acc, class Index, bool kIgnoreNan>
struct MapReduce : Reduction<MapReduce<Map, Monoid, End, In, Acc, Index, kIgnoreNan>, In, Acc, Index> {
  static constexpr bool kInWord = kSame<Acc, int> || kSame<Acc, unsigned>;
  static constexpr WarpInstruction kWarpInstruction = kInWord ? Monoid::kWarpInstruction : WarpInstruction::none;
  static constexpr bool kCombinesFast = true;
  static constexpr bool kIdempotent = !kSame<Monoid, monoid::Plus> && !kSame<Monoid, monoid::Times>;

  /// Within a pack of at most 16 elements, sums of small integers, and products that fit, are computed in 32 bits.
  static constexpr bool kWideInteger = !kIsFloating<Acc> && sizeof(Acc) == 8 && !kIgnoreNan;
  static constexpr bool kNarrowSums = kWideInteger && kSame<Monoid, monoid::Plus> &&
                                      (kSame<Map, NonZero> || (!kIsFloating<In> && sizeof(In) * Map::kWidening <= 2));
  static constexpr unsigned kNarrowProducts =
      kWideInteger && kSame<Monoid, monoid::Times> && !kIsFloating<In> && sizeof(In) <= 2 ? 4 / sizeof(In) : 1;

  /// Any, all, minimum and maximum of bytes are computed four bytes at a time.
  static constexpr bool kTruth =
      (kSame<Map, NonZero> && !kSame<Monoid, monoid::Plus>) || (kSame<In, Bool> && kSame<Monoid, monoid::Times>);
  static constexpr bool kExtreme = kIdempotent && !kSame<Map, NonZero>;

  static __device__ Acc identity() { return Monoid::template identity<Acc, In>(); }
  static __device__ Acc combine(Acc a, Acc b) { return Monoid::combine(a, b); }

  static __device__ Acc of(auto x, Index) {
    if constexpr (kIgnoreNan) {
      if (is_nan(x)) return identity();
    }
    return Map::template of<Acc>(x);
  }

  template <class ElementPack>
  static __device__ Acc of_pack(const ElementPack& pack, Index first) {
    if constexpr (kNarrowSums) {
      return convert<Acc>(narrow_sum(pack));
    } else if constexpr (ElementPack::kElements % kNarrowProducts == 0 && kNarrowProducts > 1) {
      return tree_of<MapReduce, ElementPack::kElements / kNarrowProducts>(
          [&](unsigned g) { return convert<Acc>(narrow_product(pack, g)); });
    } else {
      return Base::of_pack(pack, first);
    }
  }

  template <bool kWithWarp = false, class ElementPack, unsigned kPacks>
  static __device__ void accumulate(Acc& acc, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    if constexpr (kTruth && kInBytes<In, ElementPack>) {
      acc = combine(acc, Acc(truth_of_bytes<!kSame<Monoid, monoid::BitOr>>(tile)));
    } else if constexpr (kExtreme && kInBytes<In, ElementPack>) {
      constexpr bool kLargest = kSame<Monoid, monoid::Max<kIgnoreNan>>;
      Acc extreme = convert<Acc>(extreme_of_bytes<kLargest, In>(tile));
      // −x is ~x + 1: ptxas 12.8 to 13.3 fuse the maximum of three and forget to negate one (pytorch issue 190973).
      if constexpr (kSame<Map, Magnitude> && kIsSigned<Acc>)
        extreme = combine(extreme - 1, convert<Acc>(~extreme_of_bytes<false, In>(tile))) + 1;
      acc = combine(acc, extreme);
    } else if constexpr (kNarrowSums && ElementPack::kElements == 1) {  // a column: sum its tile in 32 bits
      static_assert(kPacks <= 16);
      acc = combine(acc, convert<Acc>(tree_of<monoid::Plus, kPacks>(
                             [&](unsigned u) { return Map::template of<int>(tile[u][0]); })));
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
      unrolled<ElementPack::kElements / 4>([&](unsigned w) { sum = Map::template add_bytes<In>(pack.word(w), sum); });
      return sum;
    } else {
      return tree_of<monoid::Plus, ElementPack::kElements>([&](unsigned e) { return Map::template of<int>(pack[e]); });
    }
  }

  /// The product of group g of kNarrowProducts elements, in an int or an unsigned.
  template <class ElementPack>
  static __device__ auto narrow_product(const ElementPack& pack, unsigned g) {
    using Word = typename Select<kIsSigned<In>, int, unsigned>::type;
    if constexpr (kInBytes<In, ElementPack> && kIsInteger<In>) {
      return static_cast<Word>(product_of_bytes<In>(pack.word(g)));
    } else {
      Word product = 1;
      unrolled<kNarrowProducts>([&](unsigned e) { product *= convert<Word>(pack[g * kNarrowProducts + e]); });
      return product;
    }
  }
};

// All operations have the same template arguments: the element type, the accumulator, the index and whether NaNs are
// ignored. Integer sums and products wrap modulo 2^64.
#define HONE_OPERATION(Name, Map, Monoid, End)                 \
  template <class In, class Acc, class Index, bool kIgnoreNan> \
  using Name = MapReduce<Map, monoid::Monoid, End, In, Acc, Index, kIgnoreNan>

HONE_OPERATION(Sum, Identity, Plus, Unchanged);
HONE_OPERATION(Product, Identity, Times, Unchanged);
HONE_OPERATION(Min, Identity, Min<kIgnoreNan>, Unified);
HONE_OPERATION(Max, Identity, Max<kIgnoreNan>, Unified);
HONE_OPERATION(SumOfSquares, Square, Plus, Unchanged);
HONE_OPERATION(L1Norm, Magnitude, Plus, Unchanged);
HONE_OPERATION(L2Norm, Square, Plus, SquareRoot);
HONE_OPERATION(Dot, ProductOfPair, Plus, Unchanged);
HONE_OPERATION(Any, NonZero, BitOr, Unchanged);
HONE_OPERATION(All, NonZero, BitAnd, Unchanged);
HONE_OPERATION(CountNonzero, NonZero, Plus, Unchanged);
#undef HONE_OPERATION

template <class In, class Acc, class Index, bool kIgnoreNan>
struct MaxNorm : MapReduce<Magnitude, monoid::Max<kIgnoreNan>, Unified, In, Acc, Index, kIgnoreNan> {
  static __device__ Acc identity() { return Acc(0); }
};

}  // namespace hone
