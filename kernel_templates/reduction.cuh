// Reduction: what an operation must say of itself, and what follows from it.
//
// An operation Op has the element type In, the Index that counts elements, and
//
//   State                      what is carried from element to element: trivially copyable, a multiple of 4 bytes,
//                              without padding
//   identity()                 the State of no element
//   combine(State, State)      associative
//   of(element, index)         the State of one element
//   write(State, n, Out*…)     the results
//
// and may have better ways to take the elements of a pack, or of a thread's tile, than one by one.
#pragma once

#include "block_reduce.cuh"
#include "pack.cuh"
#include "scalars.cuh"

namespace hone {

/// Combines values[0 … kCount) in a tree: chains of log2(kCount). kCount is a power of two.
template <class Op, unsigned kCount, class T>
__device__ T combine_tree(T (&values)[kCount]) {
#pragma unroll
  for (unsigned half = kCount / 2; half > 0; half /= 2)
#pragma unroll
    for (unsigned i = 0; i < half; ++i) values[i] = Op::combine(values[i], values[i + half]);
  return values[0];
}

template <class Op, class In_, class State_, class Index_>
struct Reduction {
  using In = In_;
  using State = State_;
  using Index = Index_;
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::none;

  /// The State of all elements of a pack; the first has index `first`.
  template <class Element, unsigned kElements>
  static __device__ State of_pack(const Pack<Element, kElements>& pack, Index first) {
    State states[kElements];
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) states[e] = Op::of(pack.elements[e], first + e);
    return combine_tree<Op>(states);
  }

  /// Adds a thread's tile: element e of pack u has index first + u · stride + e.
  template <class ElementPack, unsigned kPacks>
  static __device__ void take(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    State states[kPacks];
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) states[u] = Op::of_pack(tile[u], first + u * stride);
    state = Op::combine(state, combine_tree<Op>(states));
  }
};

}  // namespace hone
