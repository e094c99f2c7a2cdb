// Streaming (evict-first) loads and stores of packs, and asynchronous copies to shared memory.
#pragma once

#include "pack.cuh"

namespace hone {

/// The integer type of kBytes bytes, for memory instructions with a cache hint.
template <unsigned kBytes>
using Bits = typename Select<
    kBytes <= 2, typename Select<kBytes == 1, unsigned char, unsigned short>::type,
    typename Select<kBytes <= 8, typename Select<kBytes == 4, unsigned, unsigned long long>::type, uint4>::type>::type;

/// Loads data that is read for the last time: evicted first from the cache.
template <class T>
__device__ T load_streaming(const T* from) {
  using Raw = Bits<sizeof(T)>;
  const Raw raw = __ldcs(reinterpret_cast<const Raw*>(from));
  T value;
  memcpy(&value, &raw, sizeof(T));
  return value;
}

/// Stores data that this kernel never reads. The value is passed by value: through a reference into shared memory it
/// would be loaded byte by byte, as if it were not aligned.
template <class T>
__device__ void store_streaming(T* to, T value) {
  using Raw = Bits<sizeof(T)>;
  Raw raw;
  memcpy(&raw, &value, sizeof(T));
  __stcs(reinterpret_cast<Raw*>(to), raw);
}

/// cp.async: starts to copy one T of 4, 8 or 16 bytes to shared memory, bypassing registers. It is complete after
/// wait_for_copies(), and visible to the thread that started it.
template <class T>
__device__ void copy_to_shared(T* to, const T* from) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (sizeof(T) == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(sizeof(T)) : "memory");
#else
  *to = *from;
#endif
}

__device__ inline void wait_for_copies() {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace hone
