// Several operations in one pass: each accumulates every tile while the tile is in registers.
#pragma once

#include "reduction.cuh"

namespace hone {

template <class First, class Rest>
struct FusedState {
  Words<First> first;
  Words<Rest> rest;
};

/// All operations have the same In and Index. Each has an output of its own (Outputs).
template <class First, class... Others>
struct Fused : Reduction<Fused<First, Others...>, typename First::In,
                         FusedState<typename First::State, typename Fused<Others...>::State>, typename First::Index> {
  using Head = First;
  using Rest = Fused<Others...>;
  using Index = typename First::Index;
  using State = FusedState<typename First::State, typename Rest::State>;
  static constexpr bool kIdempotent = First::kIdempotent && Rest::kIdempotent;
  static constexpr bool kComputeBound = First::kComputeBound || Rest::kComputeBound;

  static __device__ State of_both(typename First::State first, typename Rest::State rest) {
    return {Words<typename First::State>::of(first), Words<typename Rest::State>::of(rest)};
  }
  static __device__ State identity() { return of_both(First::identity(), Rest::identity()); }
  static __device__ State combine(State a, State b) {
    return of_both(First::combine(a.first.value(), b.first.value()), Rest::combine(a.rest.value(), b.rest.value()));
  }
  template <class Element>
  static __device__ State of(Element x, Index i) { return of_both(First::of(x, i), Rest::of(x, i)); }

  template <class ElementPack, unsigned kPacks>
  static __device__ void accumulate(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    Both both(state);
    First::accumulate(both.first, tile, first, stride);
    Rest::accumulate(both.rest, tile, first, stride);
  }
  template <class ElementPack, unsigned kPacks>
  static __device__ void accumulate_with_warp(State& state, const ElementPack (&tile)[kPacks], Index first,
                                              Index stride) {
    Both both(state);
    First::accumulate_with_warp(both.first, tile, first, stride);
    Rest::accumulate_with_warp(both.rest, tile, first, stride);
  }
  template <unsigned kLanes>
  static __device__ State of_lanes(State state) {
    return of_both(lanes_reduce<First, kLanes>(state.first.value()), lanes_reduce<Rest, kLanes>(state.rest.value()));
  }

 private:
  /// The parts of a State, to be changed; the State has them in the end.
  struct Both {
    State& state;
    typename First::State first;
    typename Rest::State rest;

    explicit __device__ Both(State& both) : state(both), first(both.first.value()), rest(both.rest.value()) {}
    __device__ ~Both() { state = of_both(first, rest); }
  };
};

template <class Only>
struct Fused<Only> : Only {};

}  // namespace hone
