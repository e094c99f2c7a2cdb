// The loop of a thread over its tiles: full tiles, then the tail.
#pragma once

#include "pack.cuh"

namespace hone {

/// A strided loop over full tiles: loads and accumulates each, and returns the first tile that is not full. `load` is
/// called once per tile, in order. kLoadsAhead: double buffering, the next tile is loaded before this one is
/// accumulated. kFewTiles: the first iteration is peeled, so that the compiler can simplify it for the initial State;
/// with many tiles the longer code would cost more.
template <bool kLoadsAhead, bool kFewTiles, class Tile, class Index, class IsFull, class Load, class Accumulate>
__device__ Index for_each_full_tile(Index first, Index stride, const IsFull& is_full, const Load& load,
                                    const Accumulate& accumulate) {
  if constexpr (kLoadsAhead && kFewTiles) {
    if (!is_full(first)) return first;
    Tile tile, next;
    const auto accumulate_and_load_next = [&] {
      const bool goes_on = is_full(first + stride);
      if (goes_on) load(next, first + stride);
      accumulate(tile, first);
      first += stride;
      return goes_on;
    };
    load(tile, first);
    bool goes_on = accumulate_and_load_next();
    while (goes_on) {
      tile = next;
      goes_on = accumulate_and_load_next();
    }
  } else if constexpr (kLoadsAhead) {
    Tile next;
    if (is_full(first)) load(next, first);
    for (; is_full(first); first += stride) {
      const Tile tile = next;
      if (is_full(first + stride)) load(next, first + stride);
      accumulate(tile, first);
    }
  } else {
    for (; is_full(first); first += stride) {
      Tile tile;
      load(tile, first);
      accumulate(tile, first);
    }
  }
  return first;
}

/// Whether the tail is padded to a full tile, with copies of its first pack or with neutral().
template <class Op>
inline constexpr bool kPadsTail = Op::kIdempotent || Op::kHasNeutral;

/// Loads the packs first, first + stride, … that are below `packs`, and pads the others if kPadsTail.
template <class Op, class Source, class ElementPack, unsigned kPacks, class Index>
__device__ void load_tail(ElementPack (&tile)[kPacks], const Source& source, Index head, Index packs, Index first,
                          Index stride) {
#pragma unroll
  for (unsigned u = 0; u < kPacks; ++u) {
    const Index pack = first + u * stride;
    if constexpr (Op::kIdempotent) {
      if (first < packs) tile[u] = source.pack(head, pack < packs ? pack : first);
    } else {
      if (pack < packs) tile[u] = source.pack(head, pack);
      else if constexpr (Op::kHasNeutral) tile[u] = ElementPack::filled(Op::neutral());
    }
  }
}

/// Accumulates the packs that load_tail() loaded.
template <class Op, class ElementPack, unsigned kPacks, class Index>
__device__ void accumulate_tail(typename Op::State& state, const ElementPack (&tile)[kPacks], Index head, Index packs,
                                Index first, Index stride) {
  constexpr Index kElements = ElementPack::kElements;
  if constexpr (kPadsTail<Op>) {
    if (first < packs) Op::accumulate(state, tile, head + first * kElements, stride * kElements);
  } else {
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const Index pack = first + u * stride;
      const ElementPack one[1] = {tile[u]};
      if (pack < packs) Op::accumulate(state, one, head + pack * kElements, Index(0));
    }
  }
}

}  // namespace hone
