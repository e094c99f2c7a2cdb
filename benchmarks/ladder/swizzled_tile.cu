// No padding: element (row, column) of the tile lies in column ^ row, so that its rows and its columns are permutations
// of the 32 banks alike, and rows stay aligned for vector loads.
#include "tile_place.cuh"

extern "C" __global__ void __launch_bounds__(kTileThreads) swizzled_tile(const float* in, float* out, unsigned rows,
                                                                         unsigned columns) {
  __shared__ float tile[kTile][kTile];
  const TilePlace at = tile_place(columns);
  for (unsigned down = at.down; down < kTile; down += kTileThreadRows) {
    const unsigned row = at.row + down, column = at.column + at.across;
    if (row < rows && column < columns) tile[down][at.across ^ down] = in[row * columns + column];
  }
  __syncthreads();
  for (unsigned down = at.down; down < kTile; down += kTileThreadRows) {
    const unsigned row = at.row + at.across, column = at.column + down;
    if (row < rows && column < columns) out[column * rows + row] = tile[at.across][down ^ at.across];
  }
}
