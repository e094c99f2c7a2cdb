// LaneTile: a tile of contiguous elements in shared memory, of which each lane of a warp has neighbouring ones.
#pragma once

#include "lanes.cuh"

namespace hone {

/// kPacks packs of 16 bytes for each lane, a power of two.
template <class In, unsigned kPacks>
struct LaneTile {
  static constexpr unsigned kPackElements = 16 / sizeof(In);
  static constexpr unsigned kLaneElements = kPacks * kPackElements;
  static constexpr unsigned kElements = kWarpThreads * kLaneElements;
  static_assert((kPacks & (kPacks - 1)) == 0);

  using ElementPack = Pack<In, kPackElements>;
  /// From the packs of a lane to those of the next: an odd number, so that there are no bank conflicts.
  static constexpr unsigned kPitch = kPacks | 1;
  ElementPack packs[kWarpThreads * kPitch];

  /// The packs of the calling lane.
  __device__ const ElementPack* of_lane() const { return packs + threadIdx.x % kWarpThreads * kPitch; }

  /// Starts to copy the elements at `in`, which is aligned to packs, by cp.async where they fill a pack. Those before
  /// `from` and from `behind` on are not there. The lanes of a warp call it together.
  __device__ void copy(const In* in, unsigned from, auto behind) {
    const unsigned lane = threadIdx.x % kWarpThreads;
    const ElementPack* const source = reinterpret_cast<const ElementPack*>(in) + lane;
    ElementPack* const first = packs + lane / kPacks * kPitch + lane % kPacks;
    const auto place = [&](unsigned u) { return first + u * (kWarpThreads / kPacks * kPitch); };
    if (from == 0 && behind >= kElements) {
      unrolled<kPacks>([&](unsigned u) { copy_to_shared(place(u), source + u * kWarpThreads); });
      return;
    }
#pragma unroll 1
    for (unsigned u = 0; u < kPacks; ++u) {
      const unsigned e = (u * kWarpThreads + lane) * kPackElements;
      if (from <= e && e + kPackElements <= behind) {
        copy_to_shared(place(u), source + u * kWarpThreads);
      } else {
        for (unsigned i = e < from ? from : e; i < e + kPackElements && i < behind; ++i)
          reinterpret_cast<In*>(place(u))[i - e] = in[i];
      }
    }
  }
};

}  // namespace hone
