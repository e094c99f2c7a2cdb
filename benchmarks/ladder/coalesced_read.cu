// Neighbouring lanes read neighbours of a row, and write `rows` elements apart: each store is a transaction of its own.
#include "tile_place.cuh"

extern "C" __global__ void __launch_bounds__(kTileThreads) coalesced_read(const float* in, float* out, unsigned rows,
                                                                          unsigned columns) {
  const TilePlace at = tile_place(columns);
  const unsigned column = at.column + at.across;
  for (unsigned down = at.down; down < kTile; down += kTileThreadRows) {
    const unsigned row = at.row + down;
    if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
  }
}
