// The other way round: neighbouring lanes write neighbours, and read `columns` elements apart. Caches forgive strided
// loads more than strided stores: what a line holds besides is there for the next loads.
#include "tile_place.cuh"

extern "C" __global__ void __launch_bounds__(kTileThreads) coalesced_write(const float* in, float* out, unsigned rows,
                                                                           unsigned columns) {
  const TilePlace at = tile_place(columns);
  const unsigned row = at.row + at.across;
  for (unsigned down = at.down; down < kTile; down += kTileThreadRows) {
    const unsigned column = at.column + down;
    if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
  }
}
