// Pack: as many elements as one memory instruction moves; Words: any value as the 32-bit words that warps exchange.
#pragma once

namespace hone {

/// A load or store of a Pack compiles to one access of sizeof(Pack) bytes (1, 2, 4, 8 or 16) and needs that alignment.
template <class T, unsigned kElements_>
struct alignas(sizeof(T) * kElements_) Pack {
  static constexpr unsigned kElements = kElements_;
  T elements[kElements];

  __device__ T operator[](unsigned e) const { return elements[e]; }
};

/// Two elements that belong together, one of either array.
template <class T>
struct Pair {
  T a, b;
};

/// A pack of either array; its elements are pairs.
template <class T, unsigned kElements_>
struct PairPack {
  static constexpr unsigned kElements = kElements_;
  Pack<T, kElements> a, b;

  __device__ Pair<T> operator[](unsigned e) const { return {a[e], b[e]}; }
};

/// Elements of T before the first address at or after `pointer` that is a multiple of kBytes.
template <unsigned kBytes, class T>
__device__ unsigned elements_before_alignment(const T* pointer) {
  const unsigned misalignment = static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer) % kBytes);
  return (kBytes - misalignment) % kBytes / static_cast<unsigned>(sizeof(T));
}

/// A value of T aligned to 4 bytes, so that structures of several have no padding, which would never be initialised.
template <class T>
struct Words {
  static_assert(sizeof(T) % 4 == 0);
  unsigned words[sizeof(T) / 4];

  static __device__ Words of(T value) {
    Words result;
    memcpy(&result, &value, sizeof(T));
    return result;
  }

  __device__ T value() const {
    T result;
    memcpy(&result, this, sizeof(T));
    return result;
  }
};

}  // namespace hone
