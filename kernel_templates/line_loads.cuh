// Loads of rows whose neighbouring elements other blocks load.
#pragma once

#include "pack.cuh"

namespace hone {

/// Loads a pack of 16 bytes; meanwhile L2 fetches the kFetchedBytes (128 or 256) around it, which neighbouring tiles
/// need, in one piece. Without, memory serves each tile's part of a line, or of two, by a request of its own.
template <unsigned kFetchedBytes, class T>
__device__ T load_and_fetch(const T* from) {
  static_assert(sizeof(T) == 16 && alignof(T) == 16 && (kFetchedBytes == 128 || kFetchedBytes == 256));
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
  Words<T> raw;
  const unsigned long long address = __cvta_generic_to_global(from);
  if constexpr (kFetchedBytes == 128)
    asm volatile("ld.global.L2::128B.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(raw.words[0]), "=r"(raw.words[1]), "=r"(raw.words[2]), "=r"(raw.words[3])
                 : "l"(address));
  else
    asm volatile("ld.global.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(raw.words[0]), "=r"(raw.words[1]), "=r"(raw.words[2]), "=r"(raw.words[3])
                 : "l"(address));
  return raw.value();
#else
  return *from;
#endif
}

}  // namespace hone
