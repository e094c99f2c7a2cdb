// FoundStates: what the warps of a block, or of the blocks of a cluster, found of a row, in the shared memory of each
// block, for canonical_softmax_ring.cuh.
#pragma once

#include "bulk_copy.cuh"
#include "canonical_softmax_write.cuh"

namespace hone {

/// The States of a row's chunks, up to 32 · kOfLane. Rows have numbers: 0, 1, 2, … of each block alike. A warp reads
/// number n before it keeps number n + 1 + kAhead. When it has read n, all warps have kept n, and so have read
/// n − 1 − kAhead, in whose place it may keep n + 1 + kAhead: 2 · (kAhead + 1) places are enough.
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

  /// Keeps the State of a chunk of the row. All lanes of a warp call it.
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
  /// A thread of each block of a cluster calls it for each number. `chunks` are those of the row.
  __device__ void expect(unsigned number, unsigned chunks) {
    if constexpr (kClusterBlocks > 1) expect_bytes(complete_ + number % kPlaces, chunks * sizeof(State));
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

}  // namespace hone
