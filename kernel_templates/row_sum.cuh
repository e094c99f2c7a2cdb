// RowSum: the sum over all threads that share a row, which all of them get.
#pragma once

#include "block_reduce.cuh"
#include "grid.cuh"

namespace hone {

/// The sum over kLanes neighbouring lanes, in all of them. Every lane of the warp must call it.
template <unsigned kLanes>
__device__ float sum_over_lanes(float value) {
#pragma unroll
  for (unsigned mask = kLanes / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

/// kRowThreads threads share a row: kRowThreads neighbouring lanes (1 … 32), a block of kBlockThreads, or a cluster of
/// such blocks, whose partials meet through DSMEM. Both are powers of two. Double buffering, so that partials of one
/// row may be read while those of the next are written: one barrier a row.
template <unsigned kBlockThreads, unsigned kRowThreads>
class RowSum {
 public:
  static constexpr unsigned kClusterBlocks = kRowThreads > kBlockThreads ? kRowThreads / kBlockThreads : 1;

  /// Every thread makes one before it reads or writes global memory: this calls pdl_release_then_wait().
  __device__ RowSum() {
#ifndef HONE_HOST_DEVICE
    if constexpr (kClusterBlocks > 1) {
      arrive_at_cluster_barrier();
      wait_at_cluster_barrier();  // every block has started: DSMEM may be accessed
    }
#endif
    pdl_release_then_wait();
  }

  /// The number of the calling thread among those of its row.
  static __device__ unsigned thread() {
#ifndef HONE_HOST_DEVICE
    if constexpr (kClusterBlocks > 1) return rank_in_cluster() * kBlockThreads + threadIdx.x;
#endif
    return threadIdx.x % kRowThreads;
  }

  /// Every thread of the block must call it.
  __device__ float of(float value) {
    constexpr unsigned kLanes = kRowThreads < kWarpThreads ? kRowThreads : kWarpThreads;
    value = sum_over_lanes<kLanes>(value);
    if constexpr (kRowThreads > kWarpThreads) {
      constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
      __shared__ float of_warp[2][kWarps];
      const unsigned lane = threadIdx.x % kWarpThreads;
      if (lane == 0) of_warp[buffer_][threadIdx.x / kWarpThreads] = value;
      __syncthreads();
      value = sum_over_lanes<kWarps>(of_warp[buffer_][lane % kWarps]);
#ifndef HONE_HOST_DEVICE
      if constexpr (kClusterBlocks > 1) {
        __shared__ float of_block[2][kClusterBlocks];
        if (threadIdx.x < kClusterBlocks) store_in_block(&of_block[buffer_][rank_in_cluster()], threadIdx.x, value);
        arrive_at_cluster_barrier();
        wait_at_cluster_barrier();
        value = sum_over_lanes<kClusterBlocks>(of_block[buffer_][lane % kClusterBlocks]);
      }
#endif
      buffer_ ^= 1;
    }
    return value;
  }

 private:
  unsigned buffer_ = 0;
};

}  // namespace hone
