// CUDA's vector types, with CUDA's alignments.
#pragma once

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace hone_host {

template <class T, unsigned long kAlignment>
struct alignas(kAlignment) Vector1 {
  T x;
};
template <class T, unsigned long kAlignment>
struct alignas(kAlignment) Vector2 {
  T x, y;
};
template <class T>
struct Vector3 {
  T x, y, z;
};
template <class T, unsigned long kAlignment>
struct alignas(kAlignment) Vector4 {
  T x, y, z, w;
};

template <class T>
inline constexpr unsigned long kAlign2 = 2 * sizeof(T);
template <class T>
inline constexpr unsigned long kAlign4 = sizeof(T) < 4 ? 4 * sizeof(T) : 16;

}  // namespace hone_host

#define HONE_HOST_VECTOR(type, name)                                                                              \
  using name##1 = hone_host::Vector1<type, alignof(type)>;                                                        \
  using name##2 = hone_host::Vector2<type, hone_host::kAlign2<type>>;                                             \
  using name##3 = hone_host::Vector3<type>;                                                                       \
  using name##4 = hone_host::Vector4<type, hone_host::kAlign4<type>>;                                             \
  constexpr name##1 make_##name##1(type x) { return {x}; }                                                        \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }                                             \
  constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                  \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
HONE_HOST_VECTOR(signed char, char)
HONE_HOST_VECTOR(unsigned char, uchar)
HONE_HOST_VECTOR(short, short)
HONE_HOST_VECTOR(unsigned short, ushort)
HONE_HOST_VECTOR(int, int)
HONE_HOST_VECTOR(unsigned, uint)
HONE_HOST_VECTOR(long, long)
HONE_HOST_VECTOR(unsigned long, ulong)
HONE_HOST_VECTOR(long long, longlong)
HONE_HOST_VECTOR(unsigned long long, ulonglong)
HONE_HOST_VECTOR(float, float)
HONE_HOST_VECTOR(double, double)
#undef HONE_HOST_VECTOR
