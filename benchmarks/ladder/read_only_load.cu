// Strided loads through the read-only path (__ldg), which was a cache of its own on older GPUs.
#include "tile_place.cuh"

extern "C" __global__ void __launch_bounds__(kTileThreads) read_only_load(const float* in, float* out, unsigned rows,
                                                                          unsigned columns) {
  const TilePlace at = tile_place(columns);
  const unsigned row = at.row + at.across;
  for (unsigned down = at.down; down < kTile; down += kTileThreadRows) {
    const unsigned column = at.column + down;
    if (row < rows && column < columns) out[column * rows + row] = __ldg(in + row * columns + column);
  }
}
