// block_reduce(): combines one value per thread into one value per block, in one of two ways.
//
//   shared_tree   halves the number of active threads in shared memory, with a barrier per level
//   shuffle       reduces each warp through registers, then the warps' results in the first warp: one barrier
//
// Both combine in a fixed order, so floating-point results do not change from run to run.
#pragma once

namespace hone {

enum class Tail { shuffle, shared_tree };

inline constexpr unsigned kWarpThreads = 32;
inline constexpr unsigned kFullMask = 0xffffffffu;

/// Combines the values of the first kLanes lanes into lane 0. Every lane of the warp must call it.
template <class Op, unsigned kLanes, class Acc>
__device__ Acc warp_reduce(Acc value) {
#pragma unroll
  for (unsigned offset = kLanes / 2; offset > 0; offset /= 2)
    value = Op::combine(value, __shfl_down_sync(kFullMask, value, offset));
  return value;
}

/// The block's result, valid in thread 0 alone. Every thread of a block of kBlockThreads (a power of two, at least a
/// warp) must call it. Two calls need a barrier between them: they share their buffer.
template <Tail kTail, class Op, unsigned kBlockThreads, class Acc>
__device__ Acc block_reduce(Acc value) {
  static_assert(kBlockThreads % kWarpThreads == 0 && (kBlockThreads & (kBlockThreads - 1)) == 0);
  if constexpr (kTail == Tail::shuffle) {
    constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
    __shared__ Acc of_warp[kWarps];
    const unsigned lane = threadIdx.x % kWarpThreads;
    const unsigned warp = threadIdx.x / kWarpThreads;
    value = warp_reduce<Op, kWarpThreads>(value);
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) value = warp_reduce<Op, kWarps>(lane < kWarps ? of_warp[lane] : Op::identity());
    return value;
  } else {
    __shared__ Acc of_thread[kBlockThreads];
    of_thread[threadIdx.x] = value;
    for (unsigned active = kBlockThreads / 2; active > 0; active /= 2) {
      __syncthreads();
      if (threadIdx.x < active)
        of_thread[threadIdx.x] = Op::combine(of_thread[threadIdx.x], of_thread[threadIdx.x + active]);
    }
    return of_thread[threadIdx.x];
  }
}

}  // namespace hone
