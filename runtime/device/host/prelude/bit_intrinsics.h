// CUDA's intrinsics on the bits of integers, and its conversions between numbers.
#pragma once

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}

/// Byte i of the result is the byte of y:x that bits 4i to 4i + 2 of the selector name.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned chosen = selector >> 4 * i & 7;
    result |= static_cast<unsigned>(bytes >> 8 * chosen & 0xff) << 8 * i;
  }
  return result;
}

inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(
      static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low)));
}

namespace hone_host {

/// A GPU makes this of a value that the integer type cannot hold: the nearest that it can, and 0 of NaN.
template <class Integer>
Integer saturated(double x) {
  constexpr bool kSigned = static_cast<Integer>(-1) < 0;
  constexpr double kEnd = (kSigned ? 0.5 : 1.0) * (sizeof(Integer) == 8 ? 0x1p64 : 0x1p32);
  constexpr Integer kLowest = kSigned ? static_cast<Integer>(1ull << (sizeof(Integer) * 8 - 1)) : 0;
  if (!(x > static_cast<double>(kLowest))) return x != x ? 0 : kLowest;
  return x >= kEnd ? static_cast<Integer>(~kLowest) : static_cast<Integer>(x);
}

}  // namespace hone_host

// To integers: to nearest with ties to even (rn), towards zero (rz), down (rd) and up (ru).
#define HONE_HOST_TO_INTEGER(type, from, name)                                                 \
  inline type __##from##2##name##_rn(from x) { return hone_host::saturated<type>(rint(x)); }   \
  inline type __##from##2##name##_rz(from x) { return hone_host::saturated<type>(x); }         \
  inline type __##from##2##name##_rd(from x) { return hone_host::saturated<type>(floor(x)); }  \
  inline type __##from##2##name##_ru(from x) { return hone_host::saturated<type>(ceil(x)); }
HONE_HOST_TO_INTEGER(int, float, int)
HONE_HOST_TO_INTEGER(unsigned, float, uint)
HONE_HOST_TO_INTEGER(long long, float, ll)
HONE_HOST_TO_INTEGER(unsigned long long, float, ull)
HONE_HOST_TO_INTEGER(int, double, int)
HONE_HOST_TO_INTEGER(unsigned, double, uint)
HONE_HOST_TO_INTEGER(long long, double, ll)
HONE_HOST_TO_INTEGER(unsigned long long, double, ull)
#undef HONE_HOST_TO_INTEGER

inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
