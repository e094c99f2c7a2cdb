// StagedRun: copies contiguous elements, which begin at any address, into shared memory.
#pragma once

#include "pack.cuh"
#include "streaming.cuh"

namespace hone {

/// A block of kBlockThreads copies up to kBlockThreads · kPacks packs of 16 bytes by cp.async, which bypasses
/// registers: all are in flight. The ends of the run are copied as single elements, so nothing outside of it is read.
template <class In, unsigned kBlockThreads, unsigned kPacks>
struct StagedRun {
  static constexpr unsigned kPackElements = 16 / sizeof(In);
  static constexpr unsigned kMaxElements = kBlockThreads * kPacks * kPackElements;  ///< with room for one pack more
  static constexpr unsigned kMaxWithinPacks = kMaxElements - kPackElements;         ///< with room for just these packs
  static_assert(kBlockThreads >= 2 * kPackElements, "the ends of a run are copied by one thread per element");

  using ElementPack = Pack<In, kPackElements>;

  /// Starts the copies of `count` elements, and returns where the first one will be once every thread has called
  /// wait_for_copies() and a barrier: misaligned by as much as `from` is. So a run fills up to one pack more than an
  /// aligned one would.
  static __device__ const In* copy(ElementPack* shared, const In* from, unsigned count) {
    const unsigned unaligned = elements_before_alignment<16>(from);
    const unsigned head = unaligned < count ? unaligned : count;
    const unsigned packs = (count - head) / kPackElements;
    ElementPack* const first_pack = shared + (head == 0 ? 0 : 1);
    In* const to = reinterpret_cast<In*>(first_pack) - head;
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const unsigned p = u * kBlockThreads + threadIdx.x;
      if (p < packs) copy_to_shared(first_pack + p, reinterpret_cast<const ElementPack*>(from + head) + p);
    }
    const unsigned i = threadIdx.x < head ? threadIdx.x : packs * kPackElements + threadIdx.x;
    if (i < count) to[i] = from[i];
    return to;
  }
};

}  // namespace hone
