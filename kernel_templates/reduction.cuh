// Reduction: the interface of an operation, and defaults for its optional parts. Fused: several operations in one.
//
// An operation Op has the element type In, the type Index that counts elements, and
//
//   State                      the accumulator: trivially copyable, a multiple of 4 bytes, without padding
//   identity()                 the State of no elements
//   combine(State, State)      associative
//   of(element, index)         the State of one element
//   write(State, n, Out*…)     the results
//
// It may override the defaults below with faster ways to accumulate a pack, a thread's tile or neighbouring columns,
// and to combine the partials of a warp or of many threads.
#pragma once

#include "monoids.cuh"

namespace hone {

/// The elements of a thread's tile, converted to accumulators, in the order of their indices.
template <class Acc, class ElementPack, unsigned kPacks>
__device__ auto tile_values(const ElementPack (&tile)[kPacks]) {
  constexpr unsigned kElements = ElementPack::kElements;
  return Array<Acc, kPacks * kElements>([&](unsigned i) { return convert<Acc>(tile[i / kElements][i % kElements]); });
}

/// One column of some rows.
template <class In, unsigned kColumns, unsigned kRows>
__device__ auto column_of(const Pack<In, kColumns> (&rows)[kRows], unsigned column) {
  return Array<Pack<In, 1>, kRows>([&](unsigned u) { return Pack<In, 1>::filled(rows[u][column]); });
}

template <class Op, class In_, class State_, class Index_>
struct Reduction {
  using In = In_;
  using State = State_;
  using Index = Index_;
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::none;
  static constexpr bool kIsIndexed = false;   ///< the State depends on the indices of the elements
  static constexpr bool kIdempotent = false;  ///< accumulating an element twice changes nothing
  static constexpr bool kHasNeutral = false;  ///< neutral() is an element that changes no State

  /// Combining two States takes a few instructions, less than a shuffle.
  static constexpr bool kCombinesFast = false;

  /// Computing a tile takes about as long as loading it: worth double buffering in registers.
  static constexpr bool kComputeBound = false;

  /// The State of the elements of a pack; the first has index `first`.
  template <class ElementPack>
  static __device__ State of_pack(const ElementPack& pack, Index first) {
    return tree_of<Op, ElementPack::kElements>([&](unsigned e) { return Op::of(pack[e], first + e); });
  }

  /// Accumulates a thread's tile: element e of pack u has index first + u · stride + e. kWithWarp: all lanes of the
  /// warp call it together, so that the operation may use warp-wide instructions.
  template <bool kWithWarp = false, class ElementPack, unsigned kPacks>
  static __device__ void accumulate(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    state = Op::combine(
        state, tree_of<Op, kPacks>([&](unsigned u) { return Op::of_pack(tile[u], first + u * stride); }));
  }

  /// Accumulates rows of neighbouring columns, each in a State: row u of column e has index first[e] + u · stride.
  template <unsigned kColumns, unsigned kRows>
  static __device__ void accumulate_columns(State (&states)[kColumns], const Pack<In, kColumns> (&rows)[kRows],
                                            const Index (&first)[kColumns], Index stride) {
    unrolled<kColumns>([&](unsigned e) { Op::accumulate(states[e], column_of(rows, e).values, first[e], stride); });
  }

  /// Combines `count` States, at least one, with a stride.
  static __device__ State of_states(const State* states, unsigned count, unsigned stride) {
    State state = states[0];
#pragma unroll 8
    for (unsigned i = 1; i < count; ++i) state = Op::combine(state, states[i * stride]);
    return state;
  }

  /// Combines the States of each kLanes neighbouring lanes into the first of them. Every lane of the warp must call it.
  template <unsigned kLanes>
  static __device__ State of_lanes(State state) {
#pragma unroll
    for (unsigned offset = kLanes / 2; offset > 0; offset /= 2) state = Op::combine(state, shuffle_down(state, offset));
    return state;
  }

  /// The same into all of them. They get the same bits, since combine(a, b) and combine(b, a) have the same.
  template <unsigned kLanes>
  static __device__ State in_all_lanes(State state) {
#pragma unroll
    for (unsigned mask = kLanes / 2; mask > 0; mask /= 2) state = Op::combine(state, shuffle_xor(state, mask));
    return state;
  }
};

template <class First, class Rest>
struct FusedState {
  Words<First> first;
  Words<Rest> rest;
};

/// Several operations in one pass over tiles in registers, with the same In and Index; each has an output (Outputs).
template <class First, class... Others>
struct Fused : Reduction<Fused<First, Others...>, typename First::In,
                         FusedState<typename First::State, typename Fused<Others...>::State>, typename First::Index> {
  using Head = First;
  using Rest = Fused<Others...>;
  using Index = typename First::Index;
  using State = FusedState<typename First::State, typename Rest::State>;
  static constexpr bool kIsIndexed = First::kIsIndexed || Rest::kIsIndexed;
  static constexpr bool kIdempotent = First::kIdempotent && Rest::kIdempotent;
  static constexpr bool kCombinesFast = First::kCombinesFast && Rest::kCombinesFast;
  static constexpr bool kComputeBound = First::kComputeBound || Rest::kComputeBound;

  static __device__ State identity() { return {First::identity(), Rest::identity()}; }
  static __device__ State combine(State a, State b) {
    return {First::combine(a.first, b.first), Rest::combine(a.rest, b.rest)};
  }
  static __device__ State of(auto x, Index i) { return {First::of(x, i), Rest::of(x, i)}; }

  template <bool kWithWarp = false>
  static __device__ void accumulate(State& state, const auto& tile, Index first, Index stride) {
    typename First::State head = state.first;
    typename Rest::State rest = state.rest;
    First::template accumulate<kWithWarp>(head, tile, first, stride);
    Rest::template accumulate<kWithWarp>(rest, tile, first, stride);
    state = {head, rest};
  }
  template <unsigned kLanes>
  static __device__ State of_lanes(State state) {
    return {lanes_reduce<First, kLanes>(state.first), lanes_reduce<Rest, kLanes>(state.rest)};
  }
};

template <class Only> struct Fused<Only> : Only {};

}  // namespace hone
