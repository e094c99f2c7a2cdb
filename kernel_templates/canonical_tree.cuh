// The canonical tree, which fixes the order of combination of a sequence whatever computes it: elements are folded in
// halves within chunks of kChunkBytes, and chunks are combined in the binary tree of their numbers.
//
// Fold in halves: v[r] ← v[r] ⊕ v[r + s] for s = C/2 … 1. Every thread may hold any residues r modulo a power of two,
// hence vectors of any width, and the residues may be rotated: each level combines the same pairs. Absent elements and
// chunks combine to what they are combined with, so they may be left out or be represented by absent().
#pragma once

#include "lanes.cuh"

namespace hone {

inline constexpr unsigned kChunkBytes = 2048;

/// True if the State of a chunk is more than the fold of its elements' States: Op::of_chunk() makes it.
template <class Op>
inline constexpr bool kIsByChunk = requires { Op::kByChunk; };

/// How often loops that combine States are unrolled: combining those of chunks is a lot of code.
template <class Op>
inline constexpr unsigned kTreeUnroll = kIsByChunk<Op> ? 1 : 32;

/// Combines the States of two lanes. is_upper: the other lane has the lower numbers, which come first.
template <class Op>
__device__ typename Op::State combine_lanes(typename Op::State mine, typename Op::State other, bool is_upper) {
  if constexpr (kIsByChunk<Op>) return Op::combine(is_upper ? other : mine, is_upper ? mine : other);
  else return Op::combine(mine, other);
}

/// The lowest `count` bits of a number, at most 31, in reverse order. If part p of a sequence begins with the element
/// reversed_bits(p, count) and has every 2^count-th one, a fold in halves ends with the tree of neighbouring parts.
__device__ inline unsigned reversed_bits(unsigned number, unsigned count) {
  return __brev(number) >> 1 >> (31 - count);
}

/// The elements of a chunk.
template <class In>
inline constexpr unsigned kChunkElements = kChunkBytes / sizeof(In);

/// Op as an operation of Combine, which then makes the tree of the threads' numbers.
template <class Op>
struct CanonicalCombine {
  using State = typename Op::State;
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::none;
  static constexpr bool kCombinesFast = kIsFloating<State>, kNeighboursFirst = true;
  static __device__ State identity() { return Op::absent(); }
  static __device__ State combine(State a, State b) { return Op::combine(a, b); }

  /// The tree of those of kLanes neighbouring lanes that are a multiple of kStride lanes apart, in all of them. An Op
  /// whose result is the same in any order may have in_warp(), which combines all lanes in fewer instructions.
  template <unsigned kLanes, unsigned kStride = 1>
  static __device__ State in_all_lanes(State state) {
    if constexpr (kLanes == kWarpThreads && kStride == 1 && requires { Op::in_warp(state); })
      return Op::in_warp(state);
#pragma unroll kTreeUnroll<Op>
    for (unsigned mask = kStride; mask < kLanes; mask *= 2)
      state = combine_lanes<Op>(state, shuffle_xor(state, mask), (threadIdx.x & mask) != 0);
    return state;
  }
  template <unsigned kLanes>
  static __device__ State of_lanes(State state) { return in_all_lanes<kLanes>(state); }
};

/// Folds leaf(0) … leaf(kCount − 1) in halves, those of a power of two leaves of which the others are absent. It is
/// recursive, so that every index is a constant.
template <class Op, unsigned kCount, unsigned kFirst = 0, unsigned kStep = 1, class Leaf>
__device__ typename Op::State fold_leaves(const Leaf& leaf) {
  if constexpr (kFirst + kStep >= kCount) return leaf(kFirst);
  else return Op::combine(fold_leaves<Op, kCount, kFirst, 2 * kStep>(leaf),
                          fold_leaves<Op, kCount, kFirst + kStep, 2 * kStep>(leaf));
}

/// In each level of a fold the lanes exchange half of their values with those kMask apart, and go on with the other
/// half (reduce-scatter); the last kLeft values are exchanged whole. kLast is the lowest mask.
template <class Op, unsigned kLeft, unsigned kCount, unsigned kMask, unsigned kLast = 1, class State, unsigned kAll>
__device__ void scatter_lanes(State (&values)[kAll]) {
  constexpr unsigned kKept = kCount > kLeft ? kCount / 2 : kLeft;
  const bool is_upper = (threadIdx.x & kMask) != 0;
#pragma unroll
  for (unsigned i = 0; i < kKept; ++i) {
    const State low = values[i], high = values[i + kCount - kKept];
    values[i] = Op::combine(is_upper ? high : low, shuffle_xor(is_upper ? low : high, kMask));
  }
  if constexpr (kMask > kLast) scatter_lanes<Op, kLeft, kKept, kMask / 2, kLast>(values);
}

/// Folds kChunks chunks between the lanes of a warp, or of each kLanes of its lanes, and then combines them in their
/// tree; all lanes get the result. values[k · kPack + e] is what a lane has of chunk k: residue e of the lane's kPack
/// neighbouring residues. Several chunks cost few more shuffles than one. A lane keeps kFewest values at least, at most
/// kPack: four cost more shuffles than one, and two levels less, one after the other.
template <class Op, unsigned kPack, unsigned kChunks = 1, unsigned kLanes = kWarpThreads, unsigned kFewest = 1>
__device__ typename Op::State fold_lanes(typename Op::State (&values)[kChunks * kPack]) {
  constexpr unsigned kCount = kChunks * kPack;
  static_assert((kChunks == 1 || kCount <= kLanes) && (kCount & (kCount - 1)) == 0 && kFewest <= kPack);
  // A lane keeps the values from lane / kSpare · kLeft on.
  constexpr unsigned kLeft = kCount > kFewest * kLanes ? kCount / kLanes : kFewest;
  constexpr unsigned kSpare = kLanes * kLeft / kCount;
  if constexpr (kLanes > 1) scatter_lanes<Op, kLeft, kCount, kLanes / 2>(values);
#pragma unroll
  for (unsigned stride = kPack / 2; stride >= kLeft; stride /= 2)
#pragma unroll
    for (unsigned i = 0; i < kLeft; ++i)
      values[i] = Op::combine(values[i], shuffle_xor(values[i], stride / kLeft * kSpare));
  typename Op::State state = fold_leaves<Op, kLeft>([&](unsigned i) { return values[i]; });
#pragma unroll
  for (unsigned chunk = 1; chunk < kChunks; chunk *= 2)
    state = Op::combine(state, shuffle_xor(state, chunk * (kPack / kLeft) * kSpare));
  return state;
}

/// The tree of a run of chunks, which are pushed in their order: a binary counter whose digit l is the node of level l,
/// held by lane l. All lanes of the warp push the same States.
template <class Op, class Index>
class RunTree {
 public:
  using State = typename Op::State;

  /// Adds a node of 2^kLevel chunks; the number of chunks before it is a multiple of that.
  template <unsigned kLevel>
  __device__ void push(State state) {
    unsigned level = kLevel;
    for (Index carries = chunks_ >> kLevel; (carries & 1) != 0; carries >>= 1, ++level)
      state = Op::combine(shuffle_from(node_, level), state);
    if (threadIdx.x % kWarpThreads == level) node_ = state;
    chunks_ += Index(1) << kLevel;
  }

  /// The tree of all that was pushed; absent() if nothing was.
  __device__ State root() const {
    State state = Op::absent();
    unsigned level = 0;
    for (Index digits = chunks_; digits != 0; digits >>= 1, ++level)
      if ((digits & 1) != 0) state = Op::combine(shuffle_from(node_, level), state);
    return state;
  }

 private:
  State node_ = Op::absent();
  Index chunks_ = 0;
};

}  // namespace hone
