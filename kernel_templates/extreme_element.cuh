// ExtremeElement: the largest or the smallest element of packs.
#pragma once

#include "pack.cuh"
#include "simd.cuh"

namespace hone {

/// The largest of elements so far, or the smallest; of 16-bit floats, two are compared at once. A NaN wins.
template <bool kLargest, class Acc, class In>
struct ExtremeElement {
  static constexpr bool kInPairs = kIsFloat16<In>;
  using Most = typename Select<kInPairs, Pack<In, 2>, Acc>::type;
  Most most = none();

  static __device__ Most none() {
    const Acc none = kLargest ? lowest<Acc>() : highest<Acc>();
    if constexpr (kInPairs) return Most::filled(convert<In>(none));
    else return none;
  }
  template <unsigned kElements, unsigned kPacks>
  __device__ void add(const Pack<In, kElements> (&packs)[kPacks]) {
    unrolled<kPacks>([&](unsigned u) {
      if constexpr (kInPairs) {
        unrolled<kElements / 2>([&](unsigned w) {
          most.parts[0] = extreme_of_pairs<kLargest, In, false>(most.parts[0], packs[u].parts[w]);
        });
      } else {
        unrolled<kElements>([&](unsigned e) { most = extreme<kLargest, false>(most, convert<Acc>(packs[u][e])); });
      }
    });
  }
  __device__ Acc value() const {
    if constexpr (kInPairs) return extreme<kLargest, false>(convert<Acc>(most[0]), convert<Acc>(most[1]));
    else return most;
  }
};
template <class Acc, class In, unsigned kElements, unsigned kPacks>
__device__ Acc largest_of(const Pack<In, kElements> (&packs)[kPacks]) {
  ExtremeElement<true, Acc, In> largest;
  largest.add(packs);
  return largest.value();
}

}  // namespace hone
