// Exchange between the lanes of a warp: shuffles of any State, and the combination of neighbouring lanes.
#pragma once

#include "pack.cuh"

namespace hone {

inline constexpr unsigned kWarpThreads = 32;
inline constexpr unsigned kFullMask = 0xffffffffu;

/// The redux instruction that combines the 32-bit States of a warp, or `several` in the operation's of_lanes<32>().
enum class WarpInstruction { none, max, min, bit_or, bit_and, several };

#if defined(HONE_HOST_DEVICE) || __CUDA_ARCH__ >= 800
inline constexpr bool kHasWarpInstructions = true;
#else
inline constexpr bool kHasWarpInstructions = false;
#endif

/// A State whose words are each exchanged by `shuffle`.
template <class State>
__device__ State shuffled(State value, const auto& shuffle) {
  auto words = Words<State>(value);
#pragma unroll
  for (unsigned& word : words.words) word = shuffle(word);
  return words.value();
}
__device__ auto shuffle_down(auto value, unsigned offset) {
  return shuffled(value, [&](unsigned word) { return __shfl_down_sync(kFullMask, word, offset); });
}
__device__ auto shuffle_up(auto value, unsigned offset) {
  return shuffled(value, [&](unsigned word) { return __shfl_up_sync(kFullMask, word, offset); });
}
__device__ auto shuffle_from(auto value, unsigned lane) {
  return shuffled(value, [&](unsigned word) { return __shfl_sync(kFullMask, word, static_cast<int>(lane)); });
}
__device__ auto shuffle_xor(auto value, unsigned mask) {
  return shuffled(value, [&](unsigned word) { return __shfl_xor_sync(kFullMask, word, static_cast<int>(mask)); });
}

/// A value that all lanes have, so that the GPU's compiler knows it: it leaves out code for lanes that took other ways.
__device__ auto uniform(auto value) {
#if !defined(HONE_HOST_DEVICE) && __CUDA_ARCH__ >= 800
  return shuffled(value, [&](unsigned word) { return __reduce_or_sync(kFullMask, word); });
#else
  return value;
#endif
}

/// The largest float of a warp, in all its lanes. A NaN wins.
__device__ inline float largest_of_warp(float x) {
#if defined(HONE_HOST_DEVICE) || __CUDA_ARCH__ >= 800
  constexpr int kMost = 0x7fffffff;  // a NaN
  const auto ordered = [](int bits) { return bits ^ (bits >> 31 & kMost); };  // the bits of negative floats fall
  const int bits = is_nan(x) ? kMost : __float_as_int(x);
  return __int_as_float(ordered(__reduce_max_sync(kFullMask, ordered(bits))));
#else
#pragma unroll
  for (unsigned mask = 1; mask < kWarpThreads; mask *= 2) x = larger<false>(x, shuffle_xor(x, mask));
  return x;
#endif
}

/// Transposes a square of kCount neighbouring lanes: lane l gets lane i's values[l] in values[i]. All lanes call it.
template <class T, unsigned kCount>
__device__ void transpose_lanes(T (&values)[kCount]) {
#pragma unroll
  for (unsigned step = 1; step < kCount; step *= 2) {
    const bool is_upper = (threadIdx.x & step) != 0;
    unrolled<kCount>([&](unsigned i) {
      if ((i & step) != 0) return;
      const T got = shuffle_xor(is_upper ? values[i] : values[i + step], step);
      if (is_upper) values[i] = got;
      else values[i + step] = got;
    });
  }
}

/// Combines the values of each kLanes neighbouring lanes into the first of them. Every lane of the warp must call it.
template <class Op, unsigned kLanes>
__device__ typename Op::State lanes_reduce(typename Op::State value, const Op& op = {}) {
  constexpr auto kBy = kLanes == kWarpThreads && kHasWarpInstructions ? Op::kWarpInstruction : WarpInstruction::none;
  if constexpr (kLanes == 1) return value;
  else if constexpr (kBy == WarpInstruction::max) return __reduce_max_sync(kFullMask, value);
  else if constexpr (kBy == WarpInstruction::min) return __reduce_min_sync(kFullMask, value);
  else if constexpr (kBy == WarpInstruction::bit_or) return __reduce_or_sync(kFullMask, value);
  else if constexpr (kBy == WarpInstruction::bit_and) return __reduce_and_sync(kFullMask, value);
  else return op.template of_lanes<kLanes>(value);
}

}  // namespace hone
