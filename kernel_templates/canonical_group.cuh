// How the threads that share a chunk make its State, where that is more than the fold of its elements (kByChunk of
// canonical_ops.cuh): a group folds what an operation makes of each element, and all of its threads get the result.
#pragma once

#include "canonical_tree.cuh"
#include "monoids.cuh"

namespace hone {

/// One rounding each: the compiler never makes these a part of a fused multiply-add.
__device__ inline float rounded_sum(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double rounded_sum(double a, double b) { return __dadd_rn(a, b); }
__device__ inline float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double rounded_product(double a, double b) { return __dmul_rn(a, b); }

template <class Acc>
struct Optional {
  Acc value;
  bool is_there;
};

/// Monoids of folds. The result of those with kAnyOrder depends on no order.
template <class Acc>
struct CanonicalSum {
  using State = Acc;
  static __device__ Acc combine(Acc a, Acc b) { return rounded_sum(a, b); }
};
template <class Acc>
struct CanonicalMax {
  using State = Acc;
  static constexpr bool kAnyOrder = true;
  static __device__ Acc combine(Acc a, Acc b) { return larger<false>(a, b); }
};

/// The element with the lowest number, and how many there are.
template <class Acc>
struct FirstElement {
  unsigned number, count;
  Acc value;

  static __device__ FirstElement of(Optional<Acc> x, unsigned number) {
    return x.is_there ? FirstElement{number, 1, x.value} : FirstElement{~0u, 0, Acc(0)};
  }
};
template <class Acc>
struct CanonicalFirst {
  using State = FirstElement<Acc>;
  static constexpr bool kAnyOrder = true;
  static __device__ State combine(State a, State b) {
    const bool is_b = b.number < a.number;
    return {is_b ? b.number : a.number, a.count + b.count, is_b ? b.value : a.value};
  }
};

/// For a group that knows neither the first element nor how many there are.
struct UnknownFirst {};

/// The chunk of one sequence, shared by kLanes lanes of a warp: a lane has Optionals at(u, e), u < kRows, e < kPack,
/// with the numbers residue(u, e). Of the `elements` elements of the chunk, first_of() is the first.
template <unsigned kRows, unsigned kPack, unsigned kLanes, class At, class Residue, class First>
struct LaneGroup {
  static constexpr unsigned kStates = 1;
  static constexpr bool kIsHeld = true, kKnowsFirst = !kSame<First, UnknownFirst>;
  const At& at;
  const Residue& residue;
  const First& first_of;
  unsigned elements;

  __device__ auto first(unsigned) const { return first_of(); }
  __device__ unsigned count(unsigned) const { return elements; }

  template <class Monoid, class T, class Leaf>
  __device__ void fold(T (&results)[1], const Leaf& leaf, const auto&...) const {
    T values[kPack];
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e)
      values[e] = fold_leaves<Monoid, kRows>([&](unsigned u) { return leaf(at(u, e), 0u, residue(u, e)); });
    if constexpr (requires { Monoid::kAnyOrder; }) {
      T all = combine_tree<Monoid, kPack>(values);
#pragma unroll
      for (unsigned mask = 1; mask < kLanes; mask *= 2) all = Monoid::combine(all, shuffle_xor(all, mask));
      results[0] = all;
    } else {
      results[0] = fold_lanes<Monoid, kPack, 1, kLanes>(values);
    }
  }
};
template <class Op, unsigned kRows, unsigned kPack, unsigned kLanes, class At, class Residue,
          class First = UnknownFirst>
__device__ typename Op::State chunk_of_lanes(const At& at, const Residue& residue, const First& first = {},
                                             unsigned elements = 0) {
  typename Op::State states[1];
  Op::of_chunk(LaneGroup<kRows, kPack, kLanes, At, Residue, First>{at, residue, first, elements}, states);
  return states[0];
}

/// A chunk of which not all elements need be there: a lane has number u · 32 + lane as element(u), prepared, if
/// is_there(u).
template <class Op, unsigned kRounds, class Element, class IsThere>
__device__ typename Op::State chunk_of_elements(const Op& op, const Element& element, const IsThere& is_there) {
  const unsigned lane = threadIdx.x % kWarpThreads;
  if constexpr (kIsByChunk<Op>) {
    decltype(element(0)) elements[kRounds] = {};
#pragma unroll
    for (unsigned u = 0; u < kRounds; ++u)
      if (is_there(u)) elements[u] = element(u);
    return chunk_of_lanes<Op, kRounds, 1, kWarpThreads>(
        [&](unsigned u, unsigned) { return Op::present(elements[u], is_there(u)); },
        [&](unsigned u, unsigned) { return u * kWarpThreads + lane; });
  } else {
    typename Op::State of_lane[1] = {
        fold_leaves<Op, kRounds>([&](unsigned u) { return is_there(u) ? op.leaf(element(u)) : Op::absent(); })};
    return fold_lanes<Op, 1>(of_lane);
  }
}

}  // namespace hone
