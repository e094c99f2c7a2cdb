// Through shared memory both sides are coalesced. kTileStride: elements from one row of the tile to the next.
#pragma once

#include "tile_place.cuh"

template <unsigned kTileStride>
__device__ void move_tile(const float* in, float* out, unsigned rows, unsigned columns) {
  __shared__ float tile[kTile][kTileStride];
  const TilePlace at = tile_place(columns);
  for (unsigned down = at.down; down < kTile; down += kTileThreadRows) {
    const unsigned row = at.row + down, column = at.column + at.across;
    if (row < rows && column < columns) tile[down][at.across] = in[row * columns + column];
  }
  __syncthreads();
  for (unsigned down = at.down; down < kTile; down += kTileThreadRows) {
    const unsigned row = at.row + at.across, column = at.column + down;
    if (row < rows && column < columns) out[column * rows + row] = tile[at.across][down];
  }
}
