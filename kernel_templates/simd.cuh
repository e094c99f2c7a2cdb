// SIMD within a register: 8-bit elements and 16-bit floats by the word, since an SM issues few instructions per byte.
#pragma once

#include "pack.cuh"

namespace hone {

inline constexpr unsigned kEachByte = 0x01010101u;

template <class In, class ElementPack>
inline constexpr bool kInBytes = sizeof(In) == 1 && ElementPack::kElements % 4 == 0;

/// The maximum or minimum of three numbers in each 16-bit half.
template <bool kLargest, bool kSigned>
__device__ unsigned extreme_of_three(unsigned a, unsigned b, unsigned c) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 900
  if constexpr (kSigned) return kLargest ? __vimax3_s16x2(a, b, c) : __vimin3_s16x2(a, b, c);
  else return kLargest ? __vimax3_u16x2(a, b, c) : __vimin3_u16x2(a, b, c);
#else
  if constexpr (kSigned) return kLargest ? __vmaxs2(__vmaxs2(a, b), c) : __vmins2(__vmins2(a, b), c);
  else return kLargest ? __vmaxu2(__vmaxu2(a, b), c) : __vminu2(__vminu2(a, b), c);
#endif
}

/// The four elements of a word; each Bool becomes 0 or 1.
template <class In>
__device__ unsigned element_word(unsigned word) {
  if constexpr (!kSame<In, Bool>) return word;
  const unsigned carried = (word & 0x7f7f7f7fu) + 0x7f7f7f7fu;  // bit 7 of a byte whose low bits are not all zero
  return ((carried | word) & 0x80808080u) >> 7;
}

/// Byte kByte of a word, sign-extended if In is signed, zero-extended otherwise. PTX that is opaque to the compiler:
/// otherwise it multiplies in 64 bits instead of widening a 32-bit product.
template <class In, unsigned kByte>
__device__ unsigned widened_byte(unsigned word) {
#ifdef HONE_HOST_DEVICE
  using Byte = typename Select<kIsSigned<In>, signed char, unsigned char>::type;
  return static_cast<unsigned>(static_cast<int>(static_cast<Byte>(word >> (8 * kByte))));
#else
  unsigned result;
  constexpr unsigned kSelect = kIsSigned<In> ? 0x8880u + 0x1111u * kByte : 0x4440u + kByte;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(result) : "r"(word), "n"(kSelect));
  return result;
#endif
}

/// The product of the four elements of a word.
template <class In>
__device__ int product_of_bytes(unsigned word) {
  const unsigned low = widened_byte<In, 0>(word) * widened_byte<In, 1>(word);
  return static_cast<int>(low * (widened_byte<In, 2>(word) * widened_byte<In, 3>(word)));
}

/// sum + Σ aᵢ · bᵢ over the bytes of two words of elements.
template <class In>
__device__ int add_products(unsigned a, unsigned b, int sum) {
  if constexpr (kIsInteger<In> && kIsSigned<In>) return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
  else return static_cast<int>(__dp4a(a, b, static_cast<unsigned>(sum)));
}

/// The largest (or smallest) byte of a tile.
///
/// Each byte is compared as the upper half of a 16-bit number, two numbers per instruction; the byte below only decides
/// between equal upper bytes. Odd bytes are in place; even bytes are shifted up first, by a pipe that does not compare.
template <bool kLargest, bool kSigned, class ElementPack, unsigned kPacks>
__device__ int extreme_byte(const ElementPack (&tile)[kPacks]) {
  constexpr unsigned kLowest = kSigned ? 0x80008000u : 0;
  unsigned lower = kLargest ? kLowest : ~kLowest, upper = lower;
  unrolled<kPacks>([&](unsigned u) {
    const auto pack = Words<ElementPack>(tile[u]);
#pragma unroll
    for (unsigned w = 0; w < ElementPack::kElements / 4; w += 2) {
      const unsigned one = pack.words[w];
      const unsigned two = w + 1 < ElementPack::kElements / 4 ? pack.words[w + 1] : one;
      lower = extreme_of_three<kLargest, kSigned>(lower, one << 8, two << 8);
      upper = extreme_of_three<kLargest, kSigned>(upper, one, two);
    }
  });
  const unsigned pair = extreme_of_three<kLargest, kSigned>(lower, upper, upper);
  const unsigned one = extreme_of_three<kLargest, kSigned>(pair, pair << 16, pair);
  return kSigned ? static_cast<int>(one) >> 24 : static_cast<int>(one >> 24);
}

/// True if any (or all) elements of a tile are nonzero.
template <bool kAll, class ElementPack, unsigned kPacks>
__device__ bool truth_of_bytes(const ElementPack (&tile)[kPacks]) {
  if constexpr (kAll) {
    return extreme_byte<false, false>(tile) != 0;
  } else {
    unsigned bytes = 0;
    unrolled<kPacks>([&](unsigned u) {
      const auto pack = Words<ElementPack>(tile[u]);
#pragma unroll
      for (unsigned word : pack.words) bytes |= word;
    });
    return bytes != 0;
  }
}

/// The largest (or smallest) element of a tile; a Bool counts as 0 or 1.
template <bool kLargest, class In, class ElementPack, unsigned kPacks>
__device__ int extreme_of_bytes(const ElementPack (&tile)[kPacks]) {
  if constexpr (kSame<In, Bool>) return truth_of_bytes<!kLargest>(tile);
  else return extreme_byte<kLargest, kIsSigned<In>>(tile);
}

#define HONE_EXTREME_OF_PAIRS(nan)                                                                         \
  if constexpr (kSame<T, Half> && kLargest) asm("max" nan ".f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b)); \
  else if constexpr (kSame<T, Half>) asm("min" nan ".f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));        \
  else if constexpr (kLargest) asm("max" nan ".bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));             \
  else asm("min" nan ".bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b))

/// The larger (or smaller) float in each 16-bit half.
template <bool kLargest, class T, bool kIgnoreNan = true>
__device__ unsigned extreme_of_pairs(unsigned a, unsigned b) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
  unsigned c;
  if constexpr (kIgnoreNan) {
    HONE_EXTREME_OF_PAIRS("");
  } else {
    HONE_EXTREME_OF_PAIRS(".NaN");
  }
  return c;
#else
  const Pack<T, 2> x{{a}}, y{{b}};
  const auto chosen = [&](unsigned e) {
    const float p = static_cast<float>(x[e]), q = static_cast<float>(y[e]);
    if (!kIgnoreNan && is_nan(p)) return x[e];
    return is_nan(kIgnoreNan ? p : q) || (kLargest ? q > p : q < p) ? y[e] : x[e];
  };
  return Pack<T, 2>::of(chosen).parts[0];
#endif
}
#undef HONE_EXTREME_OF_PAIRS

/// Elementwise maximum or minimum of two packs of floats; NaNs are ignored.
template <bool kLargest, class T, unsigned kElements>
__device__ Pack<T, kElements> extremes_of(Pack<T, kElements> a, const Pack<T, kElements>& b) {
  if constexpr (kIsFloat16<T> && kElements % 2 == 0) {
    unrolled<kElements / 2>([&](unsigned w) { a.parts[w] = extreme_of_pairs<kLargest, T>(a.parts[w], b.parts[w]); });
  } else {
    using Acc = typename Select<kIsSmallFloat<T>, float, T>::type;
    return Pack<T, kElements>::of(
        [&](unsigned e) { return convert<T>(extreme<kLargest, true>(convert<Acc>(a[e]), convert<Acc>(b[e]))); });
  }
  return a;
}

/// The maximum or minimum over some packs and `start`; NaNs are ignored.
template <bool kLargest, class Acc, class In, unsigned kElements, unsigned kPacks>
__device__ Acc extreme_of(const Pack<In, kElements> (&packs)[kPacks], Acc start) {
  if constexpr (kIsFloat16<In> && kElements % 2 == 0) {
    Pack<In, kElements> extremes = packs[0];
#pragma unroll
    for (unsigned u = 1; u < kPacks; ++u) extremes = extremes_of<kLargest>(extremes, packs[u]);
    unsigned pair = extremes.parts[0];
#pragma unroll
    for (unsigned w = 1; w < kElements / 2; ++w) pair = extreme_of_pairs<kLargest, In>(pair, extremes.parts[w]);
    In two[2];
    memcpy(two, &pair, 4);
    return extreme<kLargest, true>(start, extreme<kLargest, true>(convert<Acc>(two[0]), convert<Acc>(two[1])));
  } else {
    unrolled<kPacks>([&](unsigned u) {
      unrolled<kElements>([&](unsigned e) { start = extreme<kLargest, true>(start, convert<Acc>(packs[u][e])); });
    });
    return start;
  }
}

}  // namespace hone
