// for_each_full_tile(): the loop of threads over tiles of packs.
#pragma once

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

}  // namespace hone
