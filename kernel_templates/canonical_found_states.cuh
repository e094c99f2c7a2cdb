// For canonical_softmax_ring.cuh, in the shared memory of each block: FoundStates, what the warps of a block, or of the
// blocks of a cluster, found of a row, and FoundNorms, what one of a block's warps makes of that for all of them.
#pragma once

#include "bulk_copy.cuh"
#include "canonical_softmax_write.cuh"

namespace hone {

/// The States of a row's chunks, up to 32 · kOfLane. Rows have numbers: 0, 1, 2, … of each block alike. A warp reads
/// number n, or another one of its block does so for it, before it keeps number n + 1 + kAhead. When n has been read,
/// all warps have kept n, so that n − 1 − kAhead has been read, in whose place is n + 1 + kAhead: 2 · (kAhead + 1)
/// places are enough.
template <class Types, unsigned kClusterBlocks, unsigned kOfLane, unsigned kAhead>
class FoundStates {
 public:
  using Sum = SoftmaxSum<Types>;
  using State = typename Sum::State;

  /// Every thread calls it, ahead of a barrier of the block, or of the cluster. `chunks` are those of the block.
  __device__ void init(unsigned chunks) {
    if (threadIdx.x < kPlaces) init_mbarrier(complete_ + threadIdx.x, kClusterBlocks > 1 ? 1 : chunks);
    for (unsigned i = threadIdx.x; i < kPlaces * kRoom; i += blockDim.x) states_[i / kRoom][i % kRoom] = Sum::absent();
  }

  /// Keeps the State of a chunk of the row. All lanes of each warp call it. So do warps without elements: nobody would
  /// wait for those, which could be many numbers behind.
  __device__ void keep(unsigned number, unsigned chunk, const State& state) {
    State* const to = &states_[number % kPlaces][chunk];
    unsigned long long* const complete = complete_ + number % kPlaces;
    const unsigned lane = threadIdx.x % kWarpThreads;
    if constexpr (kClusterBlocks > 1) {
      if (lane < blocks_of_cluster()) send_to_block(to, complete, lane, state);
    } else if (lane == 0) {
      *to = state;
      arrive(complete);
    }
  }
  /// A thread of each block of a cluster calls it for each number. `chunks` are those of a block.
  __device__ void expect(unsigned number, unsigned chunks) {
    if constexpr (kClusterBlocks > 1)
      expect_bytes(complete_ + number % kPlaces, blocks_of_cluster() * chunks * sizeof(State));
  }

  /// The State of the row, once all have found theirs. All lanes of a warp call it.
  __device__ State of_all(unsigned number) {
    wait_for_phase(complete_ + number % kPlaces, number / kPlaces % 2);
    State of_lane[kOfLane];
#pragma unroll
    for (unsigned i = 0; i < kOfLane; ++i)
      of_lane[i] = states_[number % kPlaces][threadIdx.x % kWarpThreads * kOfLane + i];
    return CanonicalCombine<Sum>::template in_all_lanes<kWarpThreads>(combine_tree<Sum, kOfLane>(of_lane));
  }

 private:
  static constexpr unsigned kPlaces = 2 * (kAhead + 1), kRoom = kWarpThreads * kOfLane;

  unsigned long long complete_[kPlaces];
  State states_[kPlaces][kRoom];
};

/// Has one warp of a block make for all what results of a row are made of, since that takes as many instructions in one
/// lane as in all. Rows have numbers: 0, 1, 2, … of each block alike. The first warp that asks for number n makes it,
/// once all warps have been told n − 2, in whose place it is.
template <class Types>
class FoundNorms {
 public:
  using Acc = typename Types::Acc;
  struct alignas(16) OfRow {
    Acc heaviest;
    SoftmaxNorm<Acc> norm;
  };

  /// Every thread calls it, ahead of a barrier of the block.
  __device__ void init() {
    if (threadIdx.x < kPlaces) init_mbarrier(made_ + threadIdx.x, 1);
    if (threadIdx.x == 0) asked_for_ = 0;
  }

  /// Calls make() if no warp of the block has done so for the number. All lanes of a warp call it.
  __device__ OfRow of_row(unsigned number, const auto& make) {
    const unsigned lane = threadIdx.x % kWarpThreads, place = number % kPlaces;
    unsigned asked_for = 0;
    if (lane == 0) asked_for = atomicMax(&asked_for_, number + 1);
    if (__shfl_sync(kFullMask, asked_for, 0) <= number) {
      const OfRow made = make();
      if (lane == 0) {
        places_[place] = made;
        arrive(made_ + place);
      }
      return made;
    }
    wait_for_phase(made_ + place, number / kPlaces % 2);
    return places_[place];
  }

 private:
  static constexpr unsigned kPlaces = 2;

  unsigned long long made_[kPlaces];
  unsigned asked_for_;  ///< how many numbers
  OfRow places_[kPlaces];
};

}  // namespace hone
