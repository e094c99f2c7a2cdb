// Several operations in one pass: each accumulates every tile while the tile is in registers.
#pragma once

#include "reduction.cuh"

namespace hone {

template <class First, class Rest>
struct FusedState {
  Words<First> first;
  Words<Rest> rest;
};

/// All operations have the same In and Index. write() has one output pointer per operation, in their order.
template <class First, class... Others>
struct Fused : Reduction<Fused<First, Others...>, typename First::In,
                         FusedState<typename First::State, typename Fused<Others...>::State>, typename First::Index> {
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
    typename First::State of_first = state.first.value();
    typename Rest::State of_rest = state.rest.value();
    First::accumulate(of_first, tile, first, stride);
    Rest::accumulate(of_rest, tile, first, stride);
    state = of_both(of_first, of_rest);
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ void accumulate_with_warp(State& state, const ElementPack (&tile)[kPacks], Index first,
                                              Index stride) {
    typename First::State of_first = state.first.value();
    typename Rest::State of_rest = state.rest.value();
    First::accumulate_with_warp(of_first, tile, first, stride);
    Rest::accumulate_with_warp(of_rest, tile, first, stride);
    state = of_both(of_first, of_rest);
  }

  template <unsigned kLanes>
  static __device__ State of_lanes(State state) {
    return of_both(lanes_reduce<First, kLanes>(state.first.value()), lanes_reduce<Rest, kLanes>(state.rest.value()));
  }

  template <class Out, class... Outs>
  static __device__ void write(State state, Index n, Out* out, Outs*... others) {
    First::write(state.first.value(), n, out);
    Rest::write(state.rest.value(), n, others...);
  }
};

template <class Only>
struct Fused<Only> : Only {};

}  // namespace hone
