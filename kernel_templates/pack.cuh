// Pack: the elements of a vectorized load or store. Words: a value as 32-bit words. Array: an array that is a result.
#pragma once

#include "scalars.cuh"

namespace hone {

/// Calls act(0), act(1), … act(kCount − 1): an unrolled loop, so that every index is a constant.
template <unsigned kCount>
__device__ void unrolled(const auto& act) {
#pragma unroll
  for (unsigned i = 0; i < kCount; ++i) act(i);
}

/// A load or store of a Pack is one access of sizeof(Pack) bytes (of 32 below sm_100: two) and needs that alignment.
template <class T, unsigned kElements_>
struct alignas(sizeof(T) * kElements_) Pack {
  static constexpr unsigned kElements = kElements_;

  // GPU compilers copy an array member by member. Members smaller than a word would be unpacked and packed again.
  using Part = typename Select<sizeof(T) < 4 && sizeof(T) * kElements % 4 == 0, unsigned, T>::type;
  Part parts[sizeof(T) * kElements / sizeof(Part)];

  /// The pack of value(0), value(1), …
  static __device__ Pack of(const auto& value) {
    Pack pack;
    unrolled<kElements>([&](unsigned e) { pack.set(e, value(e)); });
    return pack;
  }
  static __device__ Pack filled(T value) {
    return of([&](unsigned) { return value; });
  }

  __device__ T operator[](unsigned e) const {
    T value;
    memcpy(&value, reinterpret_cast<const char*>(parts) + e * sizeof(T), sizeof(T));
    return value;
  }
  __device__ void set(unsigned e, T value) {
    memcpy(reinterpret_cast<char*>(parts) + e * sizeof(T), &value, sizeof(T));
  }
  /// Word w of small elements that fill whole words.
  __device__ unsigned word(unsigned w) const { return parts[w]; }
};

/// The array of value(0), value(1), …
template <class T, unsigned kCount>
struct Array {
  T values[kCount];

  explicit __device__ Array(const auto& value) {
    unrolled<kCount>([&](unsigned i) { values[i] = value(i); });
  }
};

/// The same packs, unknown to the GPU compiler, which converts their elements again instead of keeping converted ones
/// in registers (register pressure). Elements of a word or more need no conversion: their packs stay known.
template <class T, unsigned kElements, unsigned kPacks>
__device__ Array<Pack<T, kElements>, kPacks> launder(const Pack<T, kElements> (&packs)[kPacks]) {
  return Array<Pack<T, kElements>, kPacks>([&](unsigned p) {
    Pack<T, kElements> pack = packs[p];
#ifndef HONE_HOST_DEVICE
    if constexpr (sizeof(T) < 4 && sizeof(pack.parts[0]) == 4) {
#pragma unroll
      for (unsigned& part : pack.parts) asm("" : "+r"(part));
    }
#endif
    return pack;
  });
}

/// Has the GPU compiler compute a number here, not where it is used.
template <class T>
__device__ void settle(T& number) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
#ifndef HONE_HOST_DEVICE
  if constexpr (sizeof(T) == 4) asm volatile("" : "+r"(number));
  else asm volatile("" : "+l"(number));
#endif
}

template <class T>
__device__ T settled(T number) {
  settle(number);
  return number;
}

/// Calls act() if it is wanted, behind a branch. It is a loop, because the GPU compiler would not skip what is behind a
/// branch: it predicates that.
__device__ void behind_branch(bool is_wanted, const auto& act) {
  unsigned rounds = is_wanted ? 1 : 0;
#pragma unroll 1
  for (; rounds != 0; --rounds) {
    act();
    settle(rounds);
  }
}

/// Two elements with the same index, one from each of two arrays.
template <class T>
struct Pair {
  T a, b;
};
template <class T> __device__ bool is_nan(Pair<T> x) { return is_nan(x.a) || is_nan(x.b); }

/// One pack from each of two arrays; its elements are pairs.
template <class T, unsigned kElements_>
struct PairPack {
  static constexpr unsigned kElements = kElements_;
  Pack<T, kElements> a, b;

  __device__ Pair<T> operator[](unsigned e) const { return {a[e], b[e]}; }
  __device__ Pair<unsigned> word(unsigned w) const { return {a.word(w), b.word(w)}; }
};

/// Number of elements of T from the last address that is a multiple of kBytes to `pointer`.
template <unsigned kBytes, class T>
__device__ unsigned elements_behind_alignment(const T* pointer) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer) % kBytes / sizeof(T));
}

/// Number of elements of T from `pointer` to the next address that is a multiple of kBytes; 0 if `pointer` is one.
template <unsigned kBytes, class T>
__device__ unsigned elements_before_alignment(const T* pointer) {
  const unsigned misalignment = static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer) % kBytes);
  return (kBytes - misalignment) % kBytes / static_cast<unsigned>(sizeof(T));
}

/// A T aligned to 4 bytes only: structures of several have no padding, which nothing would initialise.
template <class T>
struct Words {
  static_assert(sizeof(T) % 4 == 0);
  unsigned words[sizeof(T) / 4];

  Words() = default;
  __device__ Words(const T& value) { memcpy(this, &value, sizeof(T)); }

  __device__ operator T() const { return value(); }
  __device__ T value() const { return bits_as<T>(*this); }
};

/// Has the GPU compiler compute words here, once: not taken apart, and not again in each branch that uses them.
template <class T>
__device__ void settle(Words<T>& words) {
#pragma unroll
  for (unsigned& word : words.words) settle(word);
}

/// A 16-byte element whose address may be a multiple of 8 only.
template <unsigned kAlignment>
struct alignas(kAlignment) Wide {
  unsigned long long low, high;
};

/// kWidth neighbouring elements, for one vectorized access.
template <class T, unsigned kWidth> using ElementPack = typename Select<kWidth == 1, T, Pack<T, kWidth>>::type;

/// The integer type of kBytes bytes, for memory instructions with a cache hint.
template <unsigned kBytes>
using Bits = typename Select<
    kBytes <= 2, typename Select<kBytes == 1, unsigned char, unsigned short>::type,
    typename Select<kBytes <= 8, typename Select<kBytes == 4, unsigned, unsigned long long>::type, uint4>::type>::type;

/// Loads data that is read for the last time: evicted first from the cache.
template <class T>
__device__ T load_streaming(const T* from) {
  using Raw = Bits<sizeof(T)>;
  return bits_as<T>(__ldcs(reinterpret_cast<const Raw*>(from)));
}

/// Loads a pack while other threads may write some of its elements, which the caller does not use.
template <class T>
#ifdef HONE_HOST_DEVICE
__attribute__((no_sanitize("thread"), noinline))
#endif
__device__ T load_beside_writers(const T* from) {
  return *from;
}

/// Stores data that this kernel never reads. The value is passed by value: through a reference into shared memory it
/// would be loaded byte by byte, as if it were not aligned.
template <class T>
__device__ void store_streaming(T* to, T value) {
  using Raw = Bits<sizeof(T)>;
  __stcs(reinterpret_cast<Raw*>(to), bits_as<Raw>(value));
}

/// cp.async: starts to copy one T of 4, 8 or 16 bytes to shared memory, bypassing registers. It is complete after
/// wait_for_copies(), and visible to the thread that started it.
template <class T>
__device__ void copy_to_shared(T* to, const T* from) {
#if defined(HONE_HOST_DEVICE)
  hone_host::start_copy(to, from);
#elif __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (sizeof(T) == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(sizeof(T)) : "memory");
#else
  *to = *from;
#endif
}

__device__ inline void wait_for_copies() {
#if defined(HONE_HOST_DEVICE)
  hone_host::end_copy_group();
  hone_host::wait_for_copy_groups(0);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace hone
