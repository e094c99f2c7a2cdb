// Transposes matrices: out[c][r] = in[r][c], tile by tile, through registers and shared memory.
//
// A thread loads kWidth × kWidth blocks of elements, a pack of kVectorBytes from each of kWidth rows, all of them
// before it uses any; turns each block round in registers; and stores its packs, which now run along output rows, into
// the tile in shared memory. Behind a barrier the packs leave in the order of the output. So both sides of global
// memory see whole packs of neighbouring lanes, whatever the size of an element. After every kWidth output rows of the
// tile room is left free for as many packs as lanes that are served at once load below each other: no two of them then
// meet in a bank.
//
// Tiles that the matrix cuts short take the same way for the blocks inside and go element by element for the others;
// with packs of one element there are none. swap() exchanges pairs of tiles of a square matrix, which may be its own
// output.
//
// Constraints: all parameters are powers of two; kVectorBytes is at least an element, at most 16, and divides every
// row's address on both sides; a tile holds at least one block of elements per thread; Index holds the number of tiles
// plus one grid and every extent plus a tile. Offsets are 64 bits wide, since a pitch may be anything: they change from
// row to row by an addition.
#pragma once

#include "element.cuh"
#include "grid.cuh"
#include "tile_order.cuh"

namespace hone {

template <class T, unsigned kVectorBytes, unsigned kTileRows, unsigned kTileColumns, unsigned kBlockThreads,
          TileOrder kOrder, class Index>
struct Transpose {
  static constexpr unsigned kWidth = kVectorBytes / sizeof(T);
  static constexpr unsigned kRowPacks = kTileColumns / kWidth;    // in a row of the input tile
  static constexpr unsigned kColumnPacks = kTileRows / kWidth;    // in a row of the output tile
  static constexpr unsigned kRounds = kRowPacks * kColumnPacks / kBlockThreads;
  static constexpr unsigned kLanesAtOnce = kVectorBytes < 4 ? 32 : 128 / kVectorBytes;  // that shared memory serves
  static constexpr unsigned kPadPacks = kRowPacks < kLanesAtOnce ? kLanesAtOnce / kRowPacks : 1;
  static constexpr unsigned kPadBytes = kPadPacks * kVectorBytes < 4 ? 4 : kPadPacks * kVectorBytes;
  static constexpr unsigned kOutputRowBytes = kTileRows * sizeof(T);
  static constexpr unsigned kTileBytes = kTileColumns * kOutputRowBytes + kTileColumns / kWidth * kPadBytes;
  static_assert(kVectorBytes % sizeof(T) == 0 && kVectorBytes <= 16);
  static_assert(kRounds >= 1 && kRounds * kBlockThreads == kRowPacks * kColumnPacks);

  using Vector = ElementPack<T, kWidth>;
  using Given = Matrices<T, Index>;

  struct alignas(16) Tile {
    unsigned char bytes[kTileBytes];

    /// The element of output row `column` that comes from input row `row`, and the pack that starts with it.
    __device__ T* at(unsigned column, unsigned row) {
      return reinterpret_cast<T*>(bytes + column * kOutputRowBytes + column / kWidth * kPadBytes + row * sizeof(T));
    }
    __device__ Vector& pack_at(unsigned column, unsigned row) { return *reinterpret_cast<Vector*>(at(column, row)); }
  };

  /// Where a tile lies, and how much of it the matrix has (no more than a tile).
  struct Place {
    const T* in;
    T* out;
    unsigned rows, columns;

    __device__ bool is_full() const { return rows == kTileRows && columns == kTileColumns; }
  };

  /// What a thread holds of a tile.
  struct Blocks {
    Vector packs[kRounds][kWidth];
  };

  struct Position {
    unsigned across, down;
  };

  /// The value, of which nothing is known any more: its multiples, one for each row of a tile, are then computed when
  /// they are needed rather than kept in registers from tile to tile.
  static __device__ long long launder(long long value) {
#ifndef HONE_HOST_DEVICE
    asm volatile("" : "+l"(value));
#endif
    return value;
  }

  /// Which pack is this thread's in a round, of a tile whose rows have kAcross packs.
  template <unsigned kAcross>
  static __device__ Position position(unsigned round) {
    if constexpr (kAcross <= kBlockThreads) {
      return {threadIdx.x % kAcross, threadIdx.x / kAcross + round * (kBlockThreads / kAcross)};
    } else {
      constexpr unsigned kRoundsPerRow = kAcross / kBlockThreads;
      return {threadIdx.x + round % kRoundsPerRow * kBlockThreads, round / kRoundsPerRow};
    }
  }

  static __device__ unsigned shorter(Index extent, unsigned most) {
    return extent < most ? static_cast<unsigned>(extent) : most;
  }

  static __device__ Place place(const Given& given, Index matrix, Index tile_row, Index tile_column) {
    const Index row = tile_row * kTileRows, column = tile_column * kTileColumns;
    const auto first_in =
        static_cast<long long>(matrix) * static_cast<long long>(given.rows) + static_cast<long long>(row);
    const auto first_out =
        static_cast<long long>(matrix) * static_cast<long long>(given.columns) + static_cast<long long>(column);
    return {.in = given.in + (first_in * given.in_pitch + static_cast<long long>(column)),
            .out = given.out + (first_out * given.out_pitch + static_cast<long long>(row)),
            .rows = shorter(given.rows - row, kTileRows),
            .columns = shorter(given.columns - column, kTileColumns)};
  }

  /// Whether the matrix has all of the block of elements at `block`.
  template <bool kFull>
  static __device__ bool is_inside(const Place& at, Position block) {
    return kFull || ((block.across + 1) * kWidth <= at.columns && (block.down + 1) * kWidth <= at.rows);
  }

  template <bool kFull>
  static __device__ void load(const Place& at, long long pitch, Blocks& blocks) {
#pragma unroll
    for (unsigned round = 0; round < kRounds; ++round) {
      const Position block = position<kRowPacks>(round);
      if (!is_inside<kFull>(at, block)) continue;
      const T* const from = at.in + (block.down * kWidth) * pitch + block.across * kWidth;
#pragma unroll
      for (unsigned i = 0; i < kWidth; ++i) blocks.packs[round][i] = *reinterpret_cast<const Vector*>(from + i * pitch);
    }
  }

  /// Into shared memory; elements of blocks that the matrix cuts come straight from the input.
  template <bool kFull>
  static __device__ void stage(const Place& at, long long pitch, const Blocks& blocks, Tile& tile) {
#pragma unroll
    for (unsigned round = 0; round < kRounds; ++round) {
      const Position block = position<kRowPacks>(round);
      const unsigned row = block.down * kWidth, column = block.across * kWidth;
      if (is_inside<kFull>(at, block)) {
        Vector transposed[kWidth];
        transpose_block<T, kWidth>(blocks.packs[round], transposed);
#pragma unroll
        for (unsigned i = 0; i < kWidth; ++i) tile.pack_at(column + i, row) = transposed[i];
      } else if constexpr (!kFull && kWidth > 1) {
#pragma unroll 1
        for (unsigned r = row; r < row + kWidth && r < at.rows; ++r)
#pragma unroll 1
          for (unsigned c = column; c < column + kWidth && c < at.columns; ++c) *tile.at(c, r) = at.in[r * pitch + c];
      }
    }
  }

  template <bool kFull>
  static __device__ void store(const Place& at, long long pitch, Tile& tile) {
#pragma unroll 8
    for (unsigned round = 0; round < kRounds * kWidth; ++round) {
      const Position pack = position<kColumnPacks>(round);
      const unsigned row = pack.across * kWidth;
      T* const to = at.out + pack.down * pitch + row;
      if (kFull || (pack.down < at.columns && row + kWidth <= at.rows)) {
        *reinterpret_cast<Vector*>(to) = tile.pack_at(pack.down, row);
      } else if constexpr (!kFull && kWidth > 1) {
        if (pack.down >= at.columns) continue;
#pragma unroll 1
        for (unsigned i = 0; row + i < at.rows; ++i) to[i] = *tile.at(pack.down, row + i);
      }
    }
  }

  template <bool kFull>
  static __device__ void move(const Given& given, const Place& at, Tile& tile, bool is_first) {
    const long long in_pitch = launder(given.in_pitch), out_pitch = launder(given.out_pitch);
    Blocks blocks;
    load<kFull>(at, in_pitch, blocks);
    if (!is_first) __syncthreads();  // the tile before has left
    stage<kFull>(at, in_pitch, blocks, tile);
    __syncthreads();
    store<kFull>(at, out_pitch, tile);
  }

  static __device__ void transpose(const Given& given) {
    __shared__ Tile tile;
    pdl_release_then_wait();
    const Index tile_rows = (given.rows + (kTileRows - 1)) / kTileRows;
    const Index tile_columns = (given.columns + (kTileColumns - 1)) / kTileColumns;
    const Index tiles = given.batch * tile_rows * tile_columns;
    for (Index index = blockIdx.x; index < tiles; index += gridDim.x) {
      const auto tile_at = tile_position<kOrder>(tile_rows, tile_columns, index);
      const Place at = place(given, tile_at.matrix, tile_at.row, tile_at.column);
      if (at.is_full()) move<true>(given, at, tile, index == blockIdx.x);
      else move<false>(given, at, tile, index == blockIdx.x);
    }
  }

  template <bool kFull>
  static __device__ void exchange(const Given& given, const Place& one, const Place& other, bool is_pair,
                                  Tile (&tiles)[2]) {
    const long long in_pitch = launder(given.in_pitch), out_pitch = launder(given.out_pitch);
    Blocks of_one, of_other;
    load<kFull>(one, in_pitch, of_one);
    if (is_pair) load<kFull>(other, in_pitch, of_other);
    __syncthreads();  // the pair before has left
    stage<kFull>(one, in_pitch, of_one, tiles[0]);
    if (is_pair) stage<kFull>(other, in_pitch, of_other, tiles[1]);
    __syncthreads();  // both are read: what follows may overwrite them
    store<kFull>(one, out_pitch, tiles[0]);
    if (is_pair) store<kFull>(other, out_pitch, tiles[1]);
  }

  /// Square matrices: each block reads a tile and its mirror image before it writes either. Rows of the upper triangle
  /// of n rows of tiles are taken in pairs, the first with the last, which together have n + 1 tiles.
  static __device__ void swap(const Given& given) {
    static_assert(kTileRows == kTileColumns);
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
      const Place one = place(given, matrix, row, column);
      const Place other = place(given, matrix, column, row);
      if (one.is_full() && other.is_full()) exchange<true>(given, one, other, row != column, tiles);
      else exchange<false>(given, one, other, row != column, tiles);
    }
  }
};

}  // namespace hone
