// CUDA's intrinsics on four bytes or two halves of a 32-bit word, and the dot products of bytes.
#pragma once

namespace hone_host {

/// Part i of a word that holds parts of type T.
template <class T>
int part(unsigned word, unsigned i) {
  return static_cast<T>(word >> i * 8 * sizeof(T));
}

/// A word whose parts are `combine` of the parts of two words; results wrap to a part's width.
template <class T, class Combine>
unsigned by_parts(unsigned a, unsigned b, Combine combine) {
  constexpr unsigned kBits = 8 * sizeof(T), kMask = (1u << kBits) - 1;
  unsigned result = 0;
  for (unsigned i = 0; i < 32 / kBits; ++i)
    result |= (static_cast<unsigned>(combine(part<T>(a, i), part<T>(b, i))) & kMask) << i * kBits;
  return result;
}

/// sum + Σ aᵢ · bᵢ over the four bytes; wraps.
template <class T>
unsigned dot4(unsigned a, unsigned b, unsigned sum) {
  for (unsigned i = 0; i < 4; ++i) sum += static_cast<unsigned>(part<T>(a, i) * part<T>(b, i));
  return sum;
}

}  // namespace hone_host

// The suffix is the number of parts; s is signed, u unsigned.
#define HONE_HOST_BY_PARTS(parts, signed_part, unsigned_part)                                        \
  inline unsigned __vadd##parts(unsigned a, unsigned b) {                                            \
    return hone_host::by_parts<unsigned_part>(a, b, [](int x, int y) { return x + y; });             \
  }                                                                                                  \
  inline unsigned __vsub##parts(unsigned a, unsigned b) {                                            \
    return hone_host::by_parts<unsigned_part>(a, b, [](int x, int y) { return x - y; });             \
  }                                                                                                  \
  inline unsigned __vmaxs##parts(unsigned a, unsigned b) {                                           \
    return hone_host::by_parts<signed_part>(a, b, [](int x, int y) { return x < y ? y : x; });       \
  }                                                                                                  \
  inline unsigned __vmins##parts(unsigned a, unsigned b) {                                           \
    return hone_host::by_parts<signed_part>(a, b, [](int x, int y) { return y < x ? y : x; });       \
  }                                                                                                  \
  inline unsigned __vmaxu##parts(unsigned a, unsigned b) {                                           \
    return hone_host::by_parts<unsigned_part>(a, b, [](int x, int y) { return x < y ? y : x; });     \
  }                                                                                                  \
  inline unsigned __vminu##parts(unsigned a, unsigned b) {                                           \
    return hone_host::by_parts<unsigned_part>(a, b, [](int x, int y) { return y < x ? y : x; });     \
  }                                                                                                  \
  inline unsigned __vcmpeq##parts(unsigned a, unsigned b) {                                          \
    return hone_host::by_parts<unsigned_part>(a, b, [](int x, int y) { return x == y ? -1 : 0; });   \
  }
HONE_HOST_BY_PARTS(4, signed char, unsigned char)
HONE_HOST_BY_PARTS(2, short, unsigned short)
#undef HONE_HOST_BY_PARTS

inline int __dp4a(int a, int b, int sum) {
  return static_cast<int>(hone_host::dot4<signed char>(static_cast<unsigned>(a), static_cast<unsigned>(b),
                                                       static_cast<unsigned>(sum)));
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) { return hone_host::dot4<unsigned char>(a, b, sum); }
inline int __dp4a(char4 a, char4 b, int sum) {
  return __dp4a(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), sum);
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned sum) {
  return __dp4a(__builtin_bit_cast(unsigned, a), __builtin_bit_cast(unsigned, b), sum);
}
