// StagedRun: moves contiguous elements, which begin at any address, between global and shared memory.
#pragma once

#include "pack_range.cuh"

namespace hone {

/// A block moves up to kBlockThreads · kPacks packs of 16 bytes. The run is equally misaligned on both sides, so it
/// fills up to one pack more than an aligned one would. Its ends are moved as single elements.
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
    return reinterpret_cast<T*>(shared) + elements_behind_alignment<16>(global);
  }

  /// Starts the copies of `count` elements by cp.async, which bypasses registers: all are in flight. Returns their
  /// place(), where they will be once every thread has called wait_for_copies() and a barrier.
  static __device__ const T* copy(ElementPack* shared, const T* from, unsigned count) {
    T* const to = place(shared, from);
    move<false>(to, from, Range::of({from}, count));
    return to;
  }

  /// Stores `count` elements from their place().
  static __device__ void store(T* to, const T* staged, unsigned count) {
    move<true>(to, staged, Range::of({to}, count));
  }

 private:
  template <bool kStores>
  static __device__ void move(T* to, const T* from, const Range& range) {
    auto* const to_packs = reinterpret_cast<ElementPack*>(to + range.head);
    const auto* const from_packs = reinterpret_cast<const ElementPack*>(from + range.head);
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const unsigned p = u * kBlockThreads + threadIdx.x;
      if (kStores && p >= range.packs) break;
      if constexpr (kStores) store_streaming(to_packs + p, from_packs[p]);
      else if (p < range.packs) copy_to_shared(to_packs + p, from_packs + p);
    }
    const unsigned i = range.single(threadIdx.x);
    if (i < range.n) to[i] = from[i];
  }
};

}  // namespace hone
