// FoundSums: what the warps of a block, or of the blocks of a cluster, found of a row, in the shared memory of each
// block, for canonical_softmax_ring.cuh.
#pragma once

#include "bulk_copy.cuh"
#include "canonical_softmax_write.cuh"

namespace hone {

/// The sums of a row's chunks, up to 32 · kOfLane, and the heaviest element of each warp. Rows, and those that are
/// summed again, have numbers: 0, 1, 2, … of each block alike. A warp keeps what it found of number n + 1 when it has
/// read all of number n, so two places are enough.
template <class Types, unsigned kBlockThreads, unsigned kClusterBlocks, unsigned kOfLane>
class FoundSums {
 public:
  using Acc = typename Types::Acc;
  using Heaviest = HeaviestElement<Types>;
  using Weight = SoftmaxWeight<Types>;
  using State = typename SoftmaxSum<Types>::State;

  /// Every thread calls it, ahead of a barrier of the block, or of the cluster.
  __device__ void init() {
    if (threadIdx.x < kPlaces) init_mbarrier(complete_ + threadIdx.x, kClusterBlocks > 1 ? 1 : kWarps);
    for (unsigned i = threadIdx.x; i < kPlaces * kRoom; i += kBlockThreads)
      sums_[i / kRoom][i % kRoom] = Weight::absent();
  }

  /// Keeps the sum of a chunk of the row. All lanes of a warp call it.
  __device__ void keep(unsigned number, unsigned chunk, Acc sum) {
    send(number, &sums_[number % kPlaces][chunk / kOfLane * kStride + chunk % kOfLane], sum);
  }
  /// Keeps the warp's heaviest element, behind all of its sums. `chunks` are those of the row.
  __device__ void end(unsigned number, Acc heaviest, unsigned chunks) {
    const unsigned warp = threadIdx.x / kWarpThreads, rank = kClusterBlocks > 1 ? rank_in_cluster() : 0;
    send(number, &heaviest_[number % kPlaces][rank * kWarps + warp], heaviest);
    if constexpr (kClusterBlocks > 1) {
      if (threadIdx.x == 0) expect_bytes(complete_ + number % kPlaces, (chunks + kAll) * sizeof(Acc));
    } else {
      if (threadIdx.x % kWarpThreads == 0) arrive(complete_ + number % kPlaces);
    }
  }

  /// The State of the row, once all have found theirs. All lanes of a warp call it.
  __device__ State of_all(unsigned number) {
    wait_for_phase(complete_ + number % kPlaces, number / kPlaces % 2);
    const unsigned lane = threadIdx.x % kWarpThreads;
    Acc of_lane[kOfLane], heaviest = Heaviest::absent();
#pragma unroll
    for (unsigned i = 0; i < kOfLane; ++i) of_lane[i] = sums_[number % kPlaces][lane * kStride + i];
    for (unsigned i = lane % kAll; i < kAll; i += kWarpThreads)
      heaviest = Heaviest::combine(heaviest, heaviest_[number % kPlaces][i]);
    return {CanonicalCombine<Weight>::template in_all_lanes<kWarpThreads>(combine_tree<Weight, kOfLane>(of_lane)),
            CanonicalCombine<Heaviest>::template in_all_lanes<kWarpThreads>(heaviest)};
  }

 private:
  static constexpr unsigned kPlaces = 2, kWarps = kBlockThreads / kWarpThreads, kAll = kWarps * kClusterBlocks;
  static constexpr unsigned kStride = kOfLane + 1, kRoom = kWarpThreads * kStride;  // no bank conflicts

  __device__ void send(unsigned number, Acc* to, Acc value) {
    const unsigned lane = threadIdx.x % kWarpThreads;
    if constexpr (kClusterBlocks > 1) {
      if (lane < kClusterBlocks) send_to_block(to, complete_ + number % kPlaces, lane, value);
    } else {
      if (lane == 0) *to = value;
    }
  }

  unsigned long long complete_[kPlaces];
  Acc sums_[kPlaces][kRoom];
  Acc heaviest_[kPlaces][kAll];
};

}  // namespace hone
