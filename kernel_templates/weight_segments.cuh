// WeightSegments: the weights of a block's columns in shared memory, for rows that begin at any element.
#pragma once

#include "dynamic_smem.cuh"
#include "pack_across.cuh"

namespace hone {

/// A thread's packs are kStride apart in a row, so that a block has kPacks segments of weights. A segment is a pack for
/// each thread, and three more: rows begin with one of the first 2 * kElements elements, and packs of weights that
/// begin at any of these are read as two aligned ones.
template <class T, unsigned kElements, unsigned kPacks, unsigned kBlockThreads, unsigned kStride>
class WeightSegments {
 public:
  static constexpr unsigned kSegment = kBlockThreads + 3;

  /// `first`: the block's first pack of a row. The copies are complete after wait_for_copies() by all threads of the
  /// block and a barrier.
  __device__ void start_copies(const T* weights, unsigned long long columns, unsigned first) {
    misaligned = elements_behind_alignment<sizeof(Aligned)>(weights);
    const unsigned foreign = misaligned > 0;  // the first aligned pack, with what is before the weights
    const unsigned long long whole = (columns + misaligned) / kElements;
    const unsigned end = whole < kMost ? static_cast<unsigned>(whole) : kMost, mine = first + threadIdx.x;
    const Aligned* const from = reinterpret_cast<const Aligned*>(weights - misaligned) + mine;
    Aligned* const to = packs + threadIdx.x;
    const auto copy = [&](unsigned segment, unsigned further) {
      const unsigned p = segment * kStride + further;
      if (mine + p - foreign < end - foreign) copy_to_shared(to + segment * kSegment + further, from + p);
    };
    unrolled<kPacks>([&](unsigned segment) { copy(segment, 0); });
    if (threadIdx.x < kSegment - kBlockThreads)
      unrolled<kPacks>([&](unsigned segment) { copy(segment, kBlockThreads); });
  }

  /// The weights of the thread's pack `pack` in a row whose first pack begins with element `head`.
  __device__ Pack<T, kElements> load(unsigned pack, unsigned head) const {
    const unsigned element = misaligned + head;
    const Aligned* const first = packs + element / kElements + threadIdx.x + pack * kSegment;
    return PackAcross<T, kElements>{first[0], first[1]}.after(element % kElements);
  }

 private:
  using Aligned = Pack<T, kElements>;
  static constexpr unsigned kMost = 1u << 30;  ///< packs, more than a cluster holds
  Aligned* packs = reinterpret_cast<Aligned*>(dynamic_smem);
  unsigned misaligned;  ///< elements from the last aligned address to the first weight
};

}  // namespace hone
