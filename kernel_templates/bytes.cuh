// Four 8-bit elements at a time: a multiprocessor has no time for more than a few instructions per byte that arrives.
#pragma once

#include "pack.cuh"
#include "scalars.cuh"

namespace hone {

inline constexpr unsigned kEachByte = 0x01010101u;

template <class In, class ElementPack>
inline constexpr bool kInBytes = sizeof(In) == 1 && ElementPack::kElements % 4 == 0;

/// 1 in each byte that is not zero.
__device__ inline unsigned nonzero_bytes(unsigned word) {
  const unsigned carried = (word & 0x7f7f7f7fu) + 0x7f7f7f7fu;  // bit 7 of a byte whose low bits are not all zero
  return (carried | word) >> 7 & kEachByte;
}

/// The four elements of a word, with each Bool as 0 or 1.
template <class In>
__device__ unsigned element_word(unsigned word) {
  if constexpr (kSame<In, Bool>) return nonzero_bytes(word);
  else return word;
}

/// sum + Σ aᵢ · bᵢ over the bytes of two words of elements.
template <class In>
__device__ int add_products(unsigned a, unsigned b, int sum) {
  if constexpr (kIsInteger<In> && kIsSigned<In>) return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
  else return static_cast<int>(__dp4a(a, b, static_cast<unsigned>(sum)));
}

/// The largest (or smallest) element of a tile.
///
/// Bytes are compared as the upper and lower halves of 16-bit numbers, two to an instruction: in the upper ones what
/// lies below decides between equals alone. Signed bytes are shifted into the unsigned range first.
template <bool kLargest, class In, class ElementPack, unsigned kPacks>
__device__ int extreme_of_bytes(const ElementPack (&tile)[kPacks]) {
  constexpr bool kShifted = kIsInteger<In> && kIsSigned<In>;
  constexpr unsigned kLower = 0x00ff00ffu;
  const auto pick = [](unsigned a, unsigned b) { return kLargest ? __vmaxu2(a, b) : __vminu2(a, b); };
  unsigned lower = kLargest ? 0 : kLower;
  unsigned upper = kLargest ? 0 : 0xffffffffu;
#pragma unroll
  for (unsigned u = 0; u < kPacks; ++u) {
    const auto pack = Words<ElementPack>::of(tile[u]);
#pragma unroll
    for (unsigned w = 0; w < ElementPack::kElements / 4; ++w) {
      const unsigned word = element_word<In>(pack.words[w]) ^ (kShifted ? 0x80808080u : 0u);
      lower = pick(lower, word & kLower);
      upper = pick(upper, word);
    }
  }
  const unsigned both = pick(lower, upper >> 8 & kLower);
  const unsigned one = pick(both & 0xffffu, both >> 16);
  return static_cast<int>(one & 0xffu) - (kShifted ? 128 : 0);
}

}  // namespace hone
