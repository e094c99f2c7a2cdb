// block_reduce(): combines one value per thread into one per block, in one of two ways:
//
//   Tail::warp    warp shuffles in each warp, then the warps' results in the first warp: one barrier
//   Tail::shared  the first warp's threads each combine a share of all values in shared memory, then one thread those:
//                 two barriers and no shuffle, for devices where a shuffle costs as much as a barrier
//
// The order of combination is fixed, so floating-point results do not change from run to run.
#pragma once

#include "pack.cuh"
#include "scalars.cuh"

namespace hone {

inline constexpr unsigned kWarpThreads = 32;
inline constexpr unsigned kFullMask = 0xffffffffu;

/// The redux instruction that combines the States of a whole warp (32-bit integers), or `several` of them, in the
/// operation's own of_lanes<32>().
enum class WarpInstruction { none, max, min, bit_or, bit_and, several };

#if defined(HONE_HOST_DEVICE) || __CUDA_ARCH__ >= 800
inline constexpr bool kHasWarpInstructions = true;
#else
inline constexpr bool kHasWarpInstructions = false;
#endif

template <class State>
__device__ State shuffle_down(State value, unsigned offset) {
  auto words = Words<State>::of(value);
#pragma unroll
  for (unsigned& word : words.words) word = __shfl_down_sync(kFullMask, word, offset);
  return words.value();
}

template <class State>
__device__ State shuffle_xor(State value, unsigned mask) {
  auto words = Words<State>::of(value);
#pragma unroll
  for (unsigned& word : words.words) word = __shfl_xor_sync(kFullMask, word, static_cast<int>(mask));
  return words.value();
}

template <class State>
__device__ State shuffle_up(State value, unsigned offset) {
  auto words = Words<State>::of(value);
#pragma unroll
  for (unsigned& word : words.words) word = __shfl_up_sync(kFullMask, word, offset);
  return words.value();
}

/// Transposes a kCount × kCount square held by kCount neighbouring lanes: lane l gets in values[i] the values[l] of
/// lane i. Every lane of the warp must call it.
template <class T, unsigned kCount>
__device__ void transpose_lanes(T (&values)[kCount]) {
#pragma unroll
  for (unsigned step = 1; step < kCount; step *= 2) {
    const bool is_upper = (threadIdx.x & step) != 0;
#pragma unroll
    for (unsigned i = 0; i < kCount; ++i) {
      if ((i & step) != 0) continue;
      const T got = shuffle_xor(is_upper ? values[i] : values[i + step], step);
      if (is_upper) values[i] = got;
      else values[i + step] = got;
    }
  }
}

/// Combines the values of the first kLanes lanes into lane 0. Every lane of the warp must call it; lanes from kLanes on
/// with the identity.
template <class Op, unsigned kLanes>
__device__ typename Op::State warp_reduce(typename Op::State value) {
  if constexpr (kHasWarpInstructions && Op::kWarpInstruction == WarpInstruction::max) {
    return __reduce_max_sync(kFullMask, value);
  } else if constexpr (kHasWarpInstructions && Op::kWarpInstruction == WarpInstruction::min) {
    return __reduce_min_sync(kFullMask, value);
  } else if constexpr (kHasWarpInstructions && Op::kWarpInstruction == WarpInstruction::bit_or) {
    return __reduce_or_sync(kFullMask, value);
  } else if constexpr (kHasWarpInstructions && Op::kWarpInstruction == WarpInstruction::bit_and) {
    return __reduce_and_sync(kFullMask, value);
  } else if constexpr (kHasWarpInstructions && Op::kWarpInstruction == WarpInstruction::several) {
    return Op::template of_lanes<kWarpThreads>(value);
  } else {
    return Op::template of_lanes<kLanes>(value);
  }
}

/// Combines the values of each group of kLanes neighbouring lanes into its first lane. Every lane of the warp must call
/// it.
template <class Op, unsigned kLanes>
__device__ typename Op::State lanes_reduce(typename Op::State value) {
  if constexpr (kLanes == 1) return value;
  else if constexpr (kLanes == kWarpThreads) return warp_reduce<Op, kLanes>(value);
  else return Op::template of_lanes<kLanes>(value);
}

enum class Tail { warp, shared };

/// The block's result, valid in thread 0 only. Every thread of a block of kBlockThreads (a power of two, at least a
/// warp) must call it. Two calls need a barrier between them: they share a buffer in shared memory.
template <class Op, unsigned kBlockThreads, Tail kTail = Tail::warp>
__device__ typename Op::State block_reduce(typename Op::State value) {
  static_assert(kBlockThreads % kWarpThreads == 0 && (kBlockThreads & (kBlockThreads - 1)) == 0);
  constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  if constexpr (kTail == Tail::shared) {
    __shared__ typename Op::State of_thread[kBlockThreads];
    of_thread[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x < kWarpThreads) {
      for (unsigned i = 1; i < kWarps; ++i) value = Op::combine(value, of_thread[threadIdx.x + i * kWarpThreads]);
      of_thread[threadIdx.x] = value;
    }
    __syncthreads();
    if (threadIdx.x == 0)
      for (unsigned i = 1; i < kWarpThreads; ++i) value = Op::combine(value, of_thread[i]);
    return value;
  }
  __shared__ typename Op::State of_warp[kWarps];
  const unsigned lane = threadIdx.x % kWarpThreads;
  const unsigned warp = threadIdx.x / kWarpThreads;
  value = warp_reduce<Op, kWarpThreads>(value);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  if (warp == 0) value = warp_reduce<Op, kWarps>(lane < kWarps ? of_warp[lane] : Op::identity());
  return value;
}

}  // namespace hone
