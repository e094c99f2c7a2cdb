// Transposes matrices: out[c][r] = in[r][c], tile by tile, through registers and shared memory.
//
// A thread loads kWidth × kWidth blocks of elements, a pack of kVectorBytes from each of kWidth rows, all loads before
// any use; transposes each block in registers; and stores its packs, which now run along output rows, in the tile in
// shared memory. After a barrier the packs are stored in the order of the output. So both sides of global memory see
// coalesced, vectorized accesses for any element size. In tiles at the edge of a matrix, blocks that are inside take
// the same path, and the others are copied element by element.
//
// Constraints: all parameters are powers of two; kVectorBytes divides every row's address on both sides; Index holds
// the number of tiles plus one grid and every extent plus a tile.
#pragma once

#include "grid.cuh"
#include "transpose_tile.cuh"

namespace hone {

template <class T, unsigned kVectorBytes, unsigned kTileRows, unsigned kTileColumns, unsigned kBlockThreads,
          TileOrder kOrder, class Index>
struct Transpose {
  using Steps = TransposeTile<T, kVectorBytes, kTileRows, kTileColumns, kBlockThreads, Index>;
  using Given = typename Steps::Given;
  using Place = typename Steps::Place;
  using Tile = typename Steps::Tile;
  using Blocks = typename Steps::Blocks;

  /// Moves one tile, or a pair, of which both are loaded before either is stored.
  template <bool kFull>
  static __device__ void move(const Given& given, const Place& one, const Place& other, bool is_pair, bool is_first,
                              Tile* tiles) {
    const long long in_pitch = Steps::launder(given.in_pitch), out_pitch = Steps::launder(given.out_pitch);
    Blocks of_one, of_other;
    Steps::template load<kFull>(one, in_pitch, of_one);
    if (is_pair) Steps::template load<kFull>(other, in_pitch, of_other);
    if (!is_first) __syncthreads();  // the previous tiles have been stored
    Steps::template stage<kFull>(one, in_pitch, of_one, tiles[0]);
    if (is_pair) Steps::template stage<kFull>(other, in_pitch, of_other, tiles[1]);
    __syncthreads();
    Steps::template store<kFull>(one, out_pitch, tiles[0]);
    if (is_pair) Steps::template store<kFull>(other, out_pitch, tiles[1]);
  }

  static __device__ void transpose(const TransposeArguments& arguments) {
    const Given given{arguments};
    __shared__ Tile tile;
    pdl_release_then_wait();
    const Index tile_rows = (given.rows + (kTileRows - 1)) / kTileRows;
    const Index tile_columns = (given.columns + (kTileColumns - 1)) / kTileColumns;
    const Index tiles = given.batch * tile_rows * tile_columns;
    for (Index index = blockIdx.x; index < tiles; index += gridDim.x) {
      const Place at = Steps::place(given, tile_position<kOrder>(tile_rows, tile_columns, index));
      if (at.is_full()) move<true>(given, at, at, false, index == blockIdx.x, &tile);
      else move<false>(given, at, at, false, index == blockIdx.x, &tile);
    }
  }

  /// Square matrices, possibly in place: each block loads a tile and its mirror image before it stores either. The
  /// upper triangle of n rows of tiles is enumerated by pairs of rows: the first and the last have n + 1 tiles.
  static __device__ void swap(const TransposeArguments& arguments) {
    static_assert(kTileRows == kTileColumns);
    const Given given{arguments};
    __shared__ Tile tiles[2];
    pdl_release_then_wait();
    const Index n = (given.rows + (kTileRows - 1)) / kTileRows;
    const Index of_matrix = n % 2 == 0 ? n / 2 * (n + 1) : n * ((n + 1) / 2);
    const Index pairs = given.batch * of_matrix;
    for (Index index = blockIdx.x; index < pairs; index += gridDim.x) {
      const Index matrix = index / of_matrix;
      const Index in_matrix = index - matrix * of_matrix;
      const Index fold = in_matrix / (n + 1);
      const Index in_fold = in_matrix - fold * (n + 1);
      const bool is_upper = in_fold < n - fold;
      const Index row = is_upper ? fold : n - 1 - fold;
      const Index column = row + (is_upper ? in_fold : in_fold - (n - fold));
      const Place one = Steps::place(given, {matrix, row, column}), other = Steps::place(given, {matrix, column, row});
      if (one.is_full() && other.is_full()) move<true>(given, one, other, row != column, false, tiles);
      else move<false>(given, one, other, row != column, false, tiles);
    }
  }
};

}  // namespace hone
