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
    for (unsigned w = 0; w < sizeof(ElementPack) / 4; ++w)
      result.mask.words[w] = bytes >= 4 * w + 4 ? ~0u : bytes <= 4 * w ? 0 : (1u << 8 * (bytes - 4 * w)) - 1;
    return result;
  }

  /// The first bytes of `pack`, then the others of `end`.
  __device__ ElementPack joined(const ElementPack& pack, const ElementPack& end) const {
    auto words = Words<ElementPack>(pack);
    const auto others = Words<ElementPack>(end);
#pragma unroll
    for (unsigned w = 0; w < sizeof(ElementPack) / 4; ++w)
      words.words[w] = (words.words[w] & mask.words[w]) | (others.words[w] & ~mask.words[w]);
    return words.value();
  }
};

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
