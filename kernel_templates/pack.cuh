// Pack: as many elements as one memory instruction moves.
//
// A load or store of a Pack compiles to one access of sizeof(Pack) bytes (4, 8 or 16) and needs that alignment.
#pragma once

namespace hone {

template <class T, int kElements>
struct alignas(sizeof(T) * kElements) Pack {
  T elements[kElements];
};

/// Elements of T before the first address at or after `pointer` that is a multiple of kBytes.
template <int kBytes, class T>
__device__ unsigned elements_before_alignment(const T* pointer) {
  const unsigned misalignment = static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer) % kBytes);
  return (kBytes - misalignment) % kBytes / static_cast<unsigned>(sizeof(T));
}

}  // namespace hone
