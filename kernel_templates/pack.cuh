// Pack: as many elements as one memory instruction moves; Words: any value as the 32-bit words that warps exchange.
#pragma once

#include "scalars.cuh"

namespace hone {

/// A load or store of a Pack compiles to one access of sizeof(Pack) bytes (1, 2, 4, 8 or 16) and needs that alignment.
template <class T, unsigned kElements_>
struct alignas(sizeof(T) * kElements_) Pack {
  static constexpr unsigned kElements = kElements_;

  // Compilers for GPUs copy arrays part by part: what is smaller than a word they would take apart and put together.
  using Part = typename Select<sizeof(T) < 4 && sizeof(T) * kElements % 4 == 0, unsigned, T>::type;
  Part parts[sizeof(T) * kElements / sizeof(Part)];

  static __device__ Pack filled(T value) {
    Pack pack;
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) pack.set(e, value);
    return pack;
  }

  __device__ T operator[](unsigned e) const {
    if constexpr (sizeof(Part) == sizeof(T)) {
      return parts[e];
    } else {
      T value;
      memcpy(&value, reinterpret_cast<const char*>(parts) + e * sizeof(T), sizeof(T));
      return value;
    }
  }

  __device__ void set(unsigned e, T value) {
    if constexpr (sizeof(Part) == sizeof(T)) parts[e] = value;
    else memcpy(reinterpret_cast<char*>(parts) + e * sizeof(T), &value, sizeof(T));
  }
};

/// The same packs, though compilers for GPUs do not know it where elements are smaller than a word: what was made of
/// them before is made again, instead of being kept in registers until then. Others need no conversion: a copy.
template <class T, unsigned kElements, unsigned kPacks>
struct LaunderedPacks {
  Pack<T, kElements> packs[kPacks];

  explicit __device__ LaunderedPacks(const Pack<T, kElements> (&from)[kPacks]) {
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      packs[p] = from[p];
#ifndef HONE_HOST_DEVICE
      if constexpr (sizeof(T) < 4 && sizeof(packs[p].parts[0]) == 4) {
#pragma unroll
        for (unsigned& part : packs[p].parts) asm("" : "+r"(part));
      }
#endif
    }
  }
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

  static __device__ Words of(const T& value) {
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

/// A pack that begins at any element: the two aligned ones that it lies across. At least a word.
template <class T, unsigned kElements>
struct PackAcross {
  using Aligned = Pack<T, kElements>;
  Aligned low, high;

  /// Loads both, also where `from` is aligned.
  static __device__ PackAcross load(const T* from) {
    const auto misalignment = static_cast<unsigned>(reinterpret_cast<unsigned long long>(from) % sizeof(Aligned));
    const auto* const aligned = reinterpret_cast<const Aligned*>(from - misalignment / sizeof(T));
    return {aligned[0], aligned[1]};
  }

  static __device__ PackAcross filled(T value) { return {Aligned::filled(value), Aligned::filled(value)}; }

  /// The pack that begins so many elements after `low` does, fewer than it has. Fastest where all lanes ask alike.
  __device__ Aligned after(unsigned elements) const {
    constexpr unsigned kWords = sizeof(Aligned) / 4;
    const unsigned bytes = elements * static_cast<unsigned>(sizeof(T));
    const auto first = Words<Aligned>::of(low), second = Words<Aligned>::of(high);
    unsigned words[2 * kWords];
#pragma unroll
    for (unsigned w = 0; w < kWords; ++w) words[w] = first.words[w], words[kWords + w] = second.words[w];
#pragma unroll
    for (unsigned step = kWords / 2; step > 0; step /= 2) {
#pragma unroll
      for (unsigned w = 0; w + step < 2 * kWords; ++w) words[w] = bytes & 4 * step ? words[w + step] : words[w];
    }
    Words<Aligned> result;
#pragma unroll
    for (unsigned w = 0; w < kWords; ++w)
      result.words[w] = sizeof(T) >= 4 ? words[w] : __funnelshift_r(words[w], words[w + 1], 8 * (bytes % 4));
    return result.value();
  }
};

}  // namespace hone
