// OneArray and TwoArrays: what a range of packs reads, an array or the pairs of two.
#pragma once

#include "pack.cuh"

namespace hone {

/// One array: `head` elements before the first aligned pack, then packs.
template <class In, unsigned kPackElements>
struct OneArray {
  using ElementPack = Pack<In, kPackElements>;
  static constexpr unsigned kPackBytes = sizeof(ElementPack);

  const In* in;

  static __device__ OneArray from(const void* const* arrays) { return {static_cast<const In*>(arrays[0])}; }
  __device__ OneArray behind(auto elements) const { return {in + elements}; }

  template <unsigned kBytes = kPackBytes>
  __device__ unsigned unaligned() const {
    return elements_before_alignment<kBytes>(in);
  }
  __device__ In element(auto i) const { return in[i]; }
  __device__ ElementPack pack(auto head, auto i) const { return reinterpret_cast<const ElementPack*>(in + head)[i]; }
};

/// Two arrays whose addresses differ by a multiple of the pack's size.
template <class In, unsigned kPackElements>
struct TwoArrays {
  using ElementPack = PairPack<In, kPackElements>;
  using One = OneArray<In, kPackElements>;
  static constexpr unsigned kPackBytes = One::kPackBytes;

  One a, b;

  static __device__ TwoArrays from(const void* const* arrays) { return {One::from(arrays), One::from(arrays + 1)}; }
  __device__ TwoArrays behind(auto elements) const { return {a.behind(elements), b.behind(elements)}; }

  template <unsigned kBytes = kPackBytes>
  __device__ unsigned unaligned() const {
    return a.template unaligned<kBytes>();
  }
  __device__ Pair<In> element(auto i) const { return {a.element(i), b.element(i)}; }
  __device__ ElementPack pack(auto head, auto i) const { return {a.pack(head, i), b.pack(head, i)}; }
};

}  // namespace hone
