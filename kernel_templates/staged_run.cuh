// StagedRun: moves contiguous elements, which begin at any address, between global and shared memory.
#pragma once

#include "pack_range.cuh"
#include "streaming.cuh"

namespace hone {

/// A block of kBlockThreads moves up to kBlockThreads · kPacks packs of 16 bytes. The run is equally misaligned on both
/// sides, so it fills up to one pack more than an aligned one would. Its ends are moved as single elements, so nothing
/// outside of it is read or written.
template <class T, unsigned kBlockThreads, unsigned kPacks>
struct StagedRun {
  static constexpr unsigned kPackElements = 16 / sizeof(T);
  static constexpr unsigned kMaxElements = kBlockThreads * kPacks * kPackElements;  ///< with room for one pack more
  static constexpr unsigned kMaxWithinPacks = kMaxElements - kPackElements;         ///< with room for just these packs
  static_assert(kBlockThreads >= 2 * kPackElements, "the ends of a run are moved by one thread per element");

  using ElementPack = Pack<T, kPackElements>;
  using Range = PackRange<OneArray<T, kPackElements>, unsigned>;

  /// Where the run that begins at `global` begins in `shared`.
  static __device__ T* place(ElementPack* shared, const T* global) {
    return reinterpret_cast<T*>(shared) + reinterpret_cast<unsigned long long>(global) % 16 / sizeof(T);
  }

  /// Starts the copies of `count` elements by cp.async, which bypasses registers: all are in flight. Returns their
  /// place(), where they will be once every thread has called wait_for_copies() and a barrier.
  static __device__ const T* copy(ElementPack* shared, const T* from, unsigned count) {
    const Range range = Range::of({from}, count);
    T* const to = place(shared, from);
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const unsigned p = u * kBlockThreads + threadIdx.x;
      if (p < range.packs) copy_to_shared(pack_of(to, range, p), pack_of(from, range, p));
    }
    move_single(to, from, range);
    return to;
  }

  /// Stores `count` elements from their place().
  static __device__ void store(T* to, const T* staged, unsigned count) {
    const Range range = Range::of({to}, count);
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const unsigned p = u * kBlockThreads + threadIdx.x;
      if (p >= range.packs) break;
      store_streaming(pack_of(to, range, p), *pack_of(staged, range, p));
    }
    move_single(to, staged, range);
  }

 private:
  static __device__ ElementPack* pack_of(T* first, const Range& range, unsigned p) {
    return reinterpret_cast<ElementPack*>(first + range.head) + p;
  }
  static __device__ const ElementPack* pack_of(const T* first, const Range& range, unsigned p) {
    return reinterpret_cast<const ElementPack*>(first + range.head) + p;
  }

  static __device__ void move_single(T* to, const T* from, const Range& range) {
    const unsigned i = range.single(threadIdx.x);
    if (i < range.n) to[i] = from[i];
  }
};

}  // namespace hone
