// A tile goes through shared memory, so that loads and stores are both coalesced. Its columns are read from one bank by
// all lanes, one after the other.
#include "tile_move.cuh"

extern "C" __global__ void __launch_bounds__(kTileThreads) shared_tile(const float* in, float* out, unsigned rows,
                                                                       unsigned columns) {
  move_tile<kTile>(in, out, rows, columns);
}
