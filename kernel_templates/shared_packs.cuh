// SharedPacks: the packs of a row that a thread holds in dynamic shared memory, copied there ahead of their use.
#pragma once

#include "dynamic_smem.cuh"
#include "pack.cuh"

namespace hone {

/// The copies that a thread started since its last call become a group.
__device__ inline void end_copies() {
#if defined(HONE_HOST_DEVICE)
  hone_host::end_copy_group();
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits for all but the last kGroups groups of copies.
template <unsigned kGroups>
__device__ void wait_for_copies() {
#if defined(HONE_HOST_DEVICE)
  hone_host::wait_for_copy_groups(kGroups);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

/// A thread's packs are kBlockThreads apart in shared memory and kStride apart in the row. No other thread uses them, so
/// there are no barriers. They are copied in kParts parts: one is used while the later ones are in flight, and packs of
/// the next row take the places of those that are used for the last time.
///
/// Constraints: a pack has 4, 8 or 16 bytes.
template <class Pack, unsigned kBlockThreads, unsigned kStride>
struct SharedPacks {
  static constexpr unsigned kParts = 4, kTile = 4;
  using Tile = Pack[kTile];

  unsigned room;       ///< packs
  unsigned packs = 0;  ///< held of this row
  unsigned part = (room + kParts * kTile - 1) / (kParts * kTile) * kTile;
  Pack* held = reinterpret_cast<Pack*>(dynamic_smem) + threadIdx.x;

  /// Calls act(tile, k) for the tiles of packs k, k + 1, … once they are there. Behind the last pack is `neutral`.
  template <unsigned kPart = 0>
  __device__ void for_tiles(const Pack& neutral, const auto& act) const {
    if constexpr (kPart < kParts) {
      wait_for_copies<kParts - 1 - kPart>();
#pragma unroll 1
      for (unsigned k = kPart * part; k < (kPart + 1) * part && k < packs; k += kTile) {
        Tile tile;
        unrolled<kTile>([&](unsigned u) { tile[u] = k + u < packs ? held[(k + u) * kBlockThreads] : neutral; });
        act(tile, k);
      }
      for_tiles<kPart + 1>(neutral, act);
    }
  }

  /// Replaces packs k, k + 1, …
  __device__ void replace(const Tile& tile, unsigned k) const {
    unrolled<kTile>([&](unsigned u) {
      if (k + u < packs) held[(k + u) * kBlockThreads] = tile[u];
    });
  }

  /// Calls act(tile, k) for all tiles, of which packs behind the last are undefined, and starts to copy packs of the
  /// next row into their places: as many of the `count` that begin at `next` as there is room for.
  __device__ void refill(const Pack* next, unsigned long long count, const auto& act) {
    const unsigned packs_of_next = count < room ? static_cast<unsigned>(count) : room;
    const unsigned most = packs > packs_of_next ? packs : packs_of_next;
    unrolled<kParts>([&](unsigned p) {
#pragma unroll 1
      for (unsigned k = p * part; k < (p + 1) * part && k < most; k += kTile) {
        Tile tile;
        unrolled<kTile>([&](unsigned u) {
          if (k + u < packs) tile[u] = held[(k + u) * kBlockThreads];
        });
        act(tile, k);
        unrolled<kTile>([&](unsigned u) {
          const unsigned of_thread = k + u;
          if (of_thread < packs_of_next)
            copy_to_shared(held + of_thread * kBlockThreads,
                           next + static_cast<unsigned long long>(of_thread) * kStride);
        });
      }
      end_copies();
    });
    packs = packs_of_next;
  }
};

}  // namespace hone
