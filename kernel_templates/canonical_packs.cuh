// Packs that are made of parts: of two packs, or of single elements.
#pragma once

#include "pack.cuh"

namespace hone {

/// The first `bytes` bytes of a pack of another one's: whole words are chosen by masks, which all lanes prepare once.
template <class ElementPack>
struct PackMask {
  Words<ElementPack> mask;

  static __device__ PackMask of_first(unsigned bytes) {
    PackMask result;
#pragma unroll
    for (unsigned w = 0; w < sizeof(ElementPack) / 4; ++w) {
      const unsigned of_word = bytes < 4 * w ? 0 : bytes - 4 * w;
      result.mask.words[w] = static_cast<unsigned>((1ull << 8 * (of_word < 4 ? of_word : 4)) - 1);
    }
    return result;
  }

  /// The first bytes of `pack`, then the others of `end`.
  __device__ Words<ElementPack> joined(Words<ElementPack> pack, const Words<ElementPack>& end) const {
#pragma unroll
    for (unsigned w = 0; w < sizeof(ElementPack) / 4; ++w)
      pack.words[w] = (pack.words[w] & mask.words[w]) | (end.words[w] & ~mask.words[w]);
    return pack;
  }
};

/// Stores the first `count` elements of a pack, or the last ones, fewer than it has, in as few accesses as their
/// alignment lets: `to` is the place of its first element, and aligned as a pack.
template <bool kIsLast, class T, unsigned kElements, unsigned kWidth = kElements / 2>
__device__ void store_part(T* to, const Pack<T, kElements>& pack, unsigned count) {
#pragma unroll
  for (unsigned e = 0; e < kElements; e += 2 * kWidth)
    if (count / kWidth == e / kWidth + 1) {
      const unsigned first = kIsLast ? kElements - e - kWidth : e;
      *reinterpret_cast<Pack<T, kWidth>*>(to + first) =
          Pack<T, kWidth>::of([&](unsigned i) { return pack[first + i]; });
    }
  if constexpr (kWidth > 1) store_part<kIsLast, T, kElements, kWidth / 2>(to, pack, count);
}

template <class ElementPack>
struct PairMask : PackMask<decltype(ElementPack::a)> {
  static __device__ PairMask of_first(unsigned bytes) { return {PackMask<decltype(ElementPack::a)>::of_first(bytes)}; }
  __device__ ElementPack joined(const ElementPack& pack, const ElementPack& end) const {
    using One = PackMask<decltype(ElementPack::a)>;
    return {One::joined(pack.a, end.a), One::joined(pack.b, end.b)};
  }
};

/// The mask of packs of a type.
template <class ElementPack>
struct MaskOf {
  using type = PackMask<ElementPack>;
};
template <class T, unsigned kElements>
struct MaskOf<PairPack<T, kElements>> {
  using type = PairMask<PairPack<T, kElements>>;
};

template <class T, unsigned kElements>
__device__ void set_element(Pack<T, kElements>& pack, unsigned e, T x) { pack.set(e, x); }
template <class T, unsigned kElements>
__device__ void set_element(PairPack<T, kElements>& pack, unsigned e, Pair<T> x) {
  pack.a.set(e, x.a);
  pack.b.set(e, x.b);
}

}  // namespace hone
