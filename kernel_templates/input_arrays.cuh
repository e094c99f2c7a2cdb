// The inputs of a reduction, as packs: one array, or the pairs of two.
#pragma once

#include "pack.cuh"

namespace hone {

/// One array: `head` elements before the first aligned pack, then packs.
template <class In, unsigned kPackElements>
struct OneArray {
  using Element = In;
  using ElementPack = Pack<In, kPackElements>;

  const In* in;

  static __device__ OneArray from(const void* const* arrays) { return {static_cast<const In*>(arrays[0])}; }

  __device__ unsigned unaligned() const { return elements_before_alignment<sizeof(ElementPack)>(in); }
  template <class Index>
  __device__ Element element(Index i) const { return in[i]; }
  template <class Index>
  __device__ ElementPack pack(Index head, Index i) const { return reinterpret_cast<const ElementPack*>(in + head)[i]; }
};

/// Two arrays whose addresses differ by a multiple of the pack's size.
template <class In, unsigned kPackElements>
struct TwoArrays {
  using Element = Pair<In>;
  using ElementPack = PairPack<In, kPackElements>;

  const In* a;
  const In* b;

  static __device__ TwoArrays from(const void* const* arrays) {
    return {static_cast<const In*>(arrays[0]), static_cast<const In*>(arrays[1])};
  }

  __device__ unsigned unaligned() const { return elements_before_alignment<sizeof(In) * kPackElements>(a); }
  template <class Index>
  __device__ Element element(Index i) const { return {a[i], b[i]}; }
  template <class Index>
  __device__ ElementPack pack(Index head, Index i) const {
    using Loaded = Pack<In, kPackElements>;
    return {reinterpret_cast<const Loaded*>(a + head)[i], reinterpret_cast<const Loaded*>(b + head)[i]};
  }
};

}  // namespace hone
