// Half, BFloat16 and E4M3: storage types of at most 16 bits; arithmetic is done in float.
//
// Conversion to float is exact; conversion from float rounds to nearest, ties to even. GPUs have PTX instructions for
// it, so that no CUDA header is needed; the host device has small_float.cuh. Doubles and 64-bit integers are rounded to
// odd in float first, which keeps the bits that decide the second rounding: the result is rounded only once (Boldo and
// Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd, 2008).
#pragma once

#include "small_float.cuh"

// Warp shuffles of 16-bit types, as friends: they are found by argument-dependent lookup only and hide none of CUDA's
// own. The host device reports the caller's line, hence two more parameters there.
#ifdef HONE_HOST_DEVICE
#define HONE_SITE_PARAMETERS , const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define HONE_SITE , file, line
#else
#define HONE_SITE_PARAMETERS
#define HONE_SITE
#endif
#define HONE_SHUFFLE(Type, shuffle, Argument)                                                                        \
  friend __device__ Type shuffle(unsigned mask, Type value, Argument argument, int width = 32 HONE_SITE_PARAMETERS) { \
    value.bits = static_cast<decltype(value.bits)>(                                                                    \
        ::shuffle(mask, static_cast<unsigned>(value.bits), argument, width HONE_SITE));                              \
    return value;                                                                                                    \
  }

namespace hone {

/// x truncated to a float; the last bit is set if any bit was lost.
__device__ inline float rounded_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || x != x) return nearest;
  const bool is_farther = fabs(static_cast<double>(nearest)) > fabs(x);
  return __uint_as_float((__float_as_uint(nearest) - (is_farther ? 1 : 0)) | 1);
}

/// Rounds to odd in the 53 bits of a double first, then in the 24 bits of a float.
__device__ inline float rounded_to_odd(unsigned long long x) {
  constexpr unsigned long long kLast = 1ull << 11;
  const bool is_wide = x >> 53 != 0;
  const unsigned long long kept = (x & ~(kLast - 1)) | ((x & (kLast - 1)) != 0 ? kLast : 0);
  return rounded_to_odd(static_cast<double>(is_wide ? kept : x));
}
__device__ inline float rounded_to_odd(long long x) {
  if (x >= 0) return rounded_to_odd(static_cast<unsigned long long>(x));
  return -rounded_to_odd(0 - static_cast<unsigned long long>(x));
}

struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity = true;
};

/// True for the types below.
template <class T> inline constexpr bool kIsSmallFloat = requires { T::kFormat; };

/// The storage of a Type.
template <class Type, class Bits>
struct SmallFloat {
  Bits bits;

  HONE_SHUFFLE(Type, __shfl_sync, int)
  HONE_SHUFFLE(Type, __shfl_up_sync, unsigned)
  HONE_SHUFFLE(Type, __shfl_down_sync, unsigned)
  HONE_SHUFFLE(Type, __shfl_xor_sync, int)
};

struct Half : SmallFloat<Half, unsigned short> {
  static constexpr FloatFormat kFormat{5, 10};

  Half() = default;
  explicit __device__ Half(float value) {
#ifdef HONE_HOST_DEVICE
    bits = static_cast<unsigned short>(bits_of_float(kFormat, value));
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#endif
  }

  explicit __device__ operator float() const {
#ifdef HONE_HOST_DEVICE
    return float_of_bits(kFormat, bits);
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#endif
  }
};

struct BFloat16 : SmallFloat<BFloat16, unsigned short> {
  static constexpr FloatFormat kFormat{8, 7};

  BFloat16() = default;
  explicit __device__ BFloat16(float value) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    bits = static_cast<unsigned short>(bits_of_float(kFormat, value));
#endif
  }

  explicit __device__ operator float() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
};

/// Numbers that are too large become NaN, unlike in PTX, which saturates.
struct E4M3 : SmallFloat<E4M3, unsigned char> {
  static constexpr FloatFormat kFormat{4, 3, false};
  using Wide = Half;  ///< of widened.cuh

  E4M3() = default;
  explicit __device__ E4M3(float value) : SmallFloat{static_cast<unsigned char>(bits_of_float(kFormat, value))} {}

  explicit __device__ operator float() const { return static_cast<float>(wide()); }

  __device__ Half wide() const {
    Half wide;
    wide.bits = static_cast<unsigned short>(wide_pair(bits));
    return wide;
  }

  /// Two elements as two Halfs, both with the first in the low bits.
  static __device__ unsigned wide_pair(unsigned short pair) {
#if defined(HONE_HOST_DEVICE)
    const unsigned low = bits_of_float(Half::kFormat, float_of_bits(kFormat, pair & 0xffu));
    return low | bits_of_float(Half::kFormat, float_of_bits(kFormat, pair >> 8)) << 16;
#elif __CUDA_ARCH__ >= 890
    unsigned wide;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"(pair));
    return wide;
#else
    // Shifted into the fields of a Half, a number is 2^8 times too small: the biases are 7 and 15. NaN looks like 480.
    const unsigned upper = __byte_perm(pair, 0, 0x1404), magnitude = upper & 0x7f007f00u;
    const unsigned is_nan = (magnitude + 0x01000100u) & 0x80008000u;
    unsigned wide;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(wide) : "r"((upper & 0x80008000u) | magnitude >> 1), "r"(0x5c005c00u));
    return wide | (is_nan - (is_nan >> 5));
#endif
  }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2 && sizeof(E4M3) == 1);

}  // namespace hone

#undef HONE_SITE_PARAMETERS
#undef HONE_SITE
#undef HONE_SHUFFLE
