// Four 8-bit elements at a time: a multiprocessor has no time for more than a few instructions per byte that arrives.
#pragma once

#include "pack.cuh"
#include "scalars.cuh"

namespace hone {

inline constexpr unsigned kEachByte = 0x01010101u;

template <class In, class ElementPack>
inline constexpr bool kInBytes = sizeof(In) == 1 && ElementPack::kElements % 4 == 0;

/// The top bit of each byte that is not zero.
__device__ inline unsigned nonzero_bits(unsigned word) {
  const unsigned carried = (word & 0x7f7f7f7fu) + 0x7f7f7f7fu;  // bit 7 of a byte whose low bits are not all zero
  return (carried | word) & 0x80808080u;
}

/// The largest or smallest of three pairs of 16-bit numbers.
template <bool kLargest>
__device__ unsigned extreme_of_three(unsigned a, unsigned b, unsigned c) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 900
  if constexpr (kLargest) return __vimax3_u16x2(a, b, c);
  else return __vimin3_u16x2(a, b, c);
#else
  if constexpr (kLargest) return __vmaxu2(__vmaxu2(a, b), c);
  else return __vminu2(__vminu2(a, b), c);
#endif
}

/// Whether any (or all) elements of a tile are not zero.
template <bool kAll, class ElementPack, unsigned kPacks>
__device__ bool truth_of_bytes(const ElementPack (&tile)[kPacks]) {
  unsigned bytes = kAll ? 0x80808080u : 0;
#pragma unroll
  for (unsigned u = 0; u < kPacks; ++u) {
    const auto pack = Words<ElementPack>::of(tile[u]);
#pragma unroll
    for (unsigned word : pack.words) bytes = kAll ? bytes & nonzero_bits(word) : bytes | word;
  }
  return kAll ? bytes == 0x80808080u : bytes != 0;
}

/// The four elements of a word, with each Bool as 0 or 1.
template <class In>
__device__ unsigned element_word(unsigned word) {
  if constexpr (kSame<In, Bool>) return nonzero_bits(word) >> 7;
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
  if constexpr (kSame<In, Bool>) {
    return truth_of_bytes<!kLargest>(tile);
  } else {
    constexpr unsigned kBias = kIsSigned<In> ? 0x80808080u : 0;
    constexpr unsigned kLower = 0x00ff00ffu;
    constexpr unsigned kNone = kLargest ? 0 : 0xffffffffu;
    unsigned lower = kNone & kLower;
    unsigned upper = kNone;
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const auto pack = Words<ElementPack>::of(tile[u]);
#pragma unroll
      for (unsigned w = 0; w < ElementPack::kElements / 4; w += 2) {
        const unsigned one = pack.words[w] ^ kBias;
        const unsigned two = w + 1 < ElementPack::kElements / 4 ? pack.words[w + 1] ^ kBias : one;
        lower = extreme_of_three<kLargest>(lower, one & kLower, two & kLower);
        upper = extreme_of_three<kLargest>(upper, one, two);
      }
    }
    const unsigned both = extreme_of_three<kLargest>(lower, upper >> 8 & kLower, lower);
    const unsigned one = extreme_of_three<kLargest>(both & 0xffffu, both >> 16, both & 0xffffu);
    return static_cast<int>(one & 0xffu) - static_cast<int>(kBias & 0xffu);
  }
}

}  // namespace hone
