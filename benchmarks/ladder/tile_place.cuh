// The common part of the transposing steps: blocks of 32 × 8 threads take one tile of 32 × 32 elements each, and
// every thread has four of them.
#pragma once

constexpr unsigned kTile = 32;
constexpr unsigned kTileThreadRows = 8;
constexpr unsigned kTileThreads = kTile * kTileThreadRows;

/// Where the block's tile begins, and where in it this thread's first element lies: `across` is neighbouring lanes'
/// next.
struct TilePlace {
  unsigned row, column, across, down;
};

__device__ inline TilePlace tile_place(unsigned columns) {
  const unsigned tiles_across = (columns + kTile - 1) / kTile;
  return {blockIdx.x / tiles_across * kTile, blockIdx.x % tiles_across * kTile, threadIdx.x % kTile,
          threadIdx.x / kTile};
}
