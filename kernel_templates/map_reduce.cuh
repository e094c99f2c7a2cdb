// MapReduce: the operation that maps each element to an accumulator, combines those by a monoid and finishes the
// result.
#pragma once

#include "bytes.cuh"
#include "element_maps.cuh"
#include "monoids.cuh"
#include "reduction.cuh"

namespace hone {

template <class T>
__device__ bool has_nan(T x) { return is_nan(x); }
template <class T>
__device__ bool has_nan(Pair<T> x) { return is_nan(x.a) || is_nan(x.b); }

template <class Map, class Monoid, class End, class In, class Acc, class Index, bool kIgnoreNan>
struct MapReduce : Reduction<MapReduce<Map, Monoid, End, In, Acc, Index, kIgnoreNan>, In, Acc, Index> {
  static constexpr bool kInWord = kSame<Acc, int> || kSame<Acc, unsigned>;
  static constexpr WarpInstruction kWarpInstruction = kInWord ? Monoid::kWarpInstruction : WarpInstruction::none;
  static constexpr bool kIdempotent = !kSame<Monoid, monoid::Plus> && !kSame<Monoid, monoid::Times>;

  /// Within a pack, which has at most 16 elements, sums of small integers are computed in 32 bits; products of as many
  /// elements as fit 32 bits are, too.
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
      // −x is computed as ~x + 1: ptxas 12.8 to 13.3 fuse the maximum of three numbers into one instruction and forget
      // to negate one of them (pytorch issue 190973).
      if constexpr (kSame<Map, Magnitude> && kIsSigned<Acc>)
        extreme = combine(extreme - 1, convert<Acc>(~extreme_of_bytes<false, In>(tile))) + 1;
      acc = combine(acc, extreme);
    } else if constexpr (kNarrowSums && ElementPack::kElements == 1) {  // a column: sum its tile in 32 bits
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

  /// The product of group g of kNarrowProducts elements, in an int or an unsigned.
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

}  // namespace hone
