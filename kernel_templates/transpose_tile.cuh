// A tile of transpose.cuh: the addresses, and the steps from packs of input rows to packs of output rows.
#pragma once

#include "line_loads.cuh"
#include "tile_order.cuh"

namespace hone {

/// transposed[c][r] = block[r][c].
template <class T, unsigned kWidth>
__device__ void transpose_block(const ElementPack<T, kWidth> (&block)[kWidth],
                                ElementPack<T, kWidth> (&transposed)[kWidth]) {
  if constexpr (kWidth == 1) {
    transposed[0] = block[0];
  } else if constexpr (sizeof(T) == 2 && kWidth * sizeof(T) % 4 == 0) {
    unrolled<kWidth>([&](unsigned c) {
      unrolled<kWidth / 2>([&](unsigned r) {
        transposed[c].parts[r] =
            __byte_perm(block[2 * r].parts[c / 2], block[2 * r + 1].parts[c / 2], c % 2 == 0 ? 0x5410 : 0x7632);
      });
    });
  } else if constexpr (sizeof(T) == 1 && kWidth % 4 == 0) {
    unrolled<kWidth / 4>([&](unsigned c) {
      unrolled<kWidth / 4>([&](unsigned r) {
        const auto word = [&](unsigned i) { return block[4 * r + i].parts[c]; };
        const unsigned ab_low = __byte_perm(word(0), word(1), 0x5140), ab_high = __byte_perm(word(0), word(1), 0x7362);
        const unsigned de_low = __byte_perm(word(2), word(3), 0x5140), de_high = __byte_perm(word(2), word(3), 0x7362);
        transposed[4 * c].parts[r] = __byte_perm(ab_low, de_low, 0x5410);
        transposed[4 * c + 1].parts[r] = __byte_perm(ab_low, de_low, 0x7632);
        transposed[4 * c + 2].parts[r] = __byte_perm(ab_high, de_high, 0x5410);
        transposed[4 * c + 3].parts[r] = __byte_perm(ab_high, de_high, 0x7632);
      });
    });
  } else {
    unrolled<kWidth>([&](unsigned c) { unrolled<kWidth>([&](unsigned r) { transposed[c].set(r, block[r][c]); }); });
  }
}

template <class T, unsigned kVectorBytes, unsigned kTileRows, unsigned kTileColumns, unsigned kBlockThreads,
          class Index>
struct TransposeTile {
  static constexpr unsigned kWidth = kVectorBytes / sizeof(T);
  static constexpr unsigned kRowPacks = kTileColumns / kWidth;  ///< per row of the input tile
  static constexpr unsigned kColumnPacks = kTileRows / kWidth;  ///< per row of the output tile
  static constexpr unsigned kRounds = kRowPacks * kColumnPacks / kBlockThreads;  ///< blocks of elements per thread
  /// Lanes that one pass over shared memory (32 banks of 4 bytes) serves. After every kWidth output rows the tile is
  /// padded by as many packs as these lanes load below each other, so there are no bank conflicts.
  static constexpr unsigned kLanesAtOnce = kVectorBytes < 4 ? 32 : 128 / kVectorBytes;
  static constexpr unsigned kPadPacks = kRowPacks < kLanesAtOnce ? kLanesAtOnce / kRowPacks : 1;
  static constexpr unsigned kPadBytes = kPadPacks * kVectorBytes < 4 ? 4 : kPadPacks * kVectorBytes;
  static constexpr unsigned kOutputRowBytes = kTileRows * sizeof(T);
  static constexpr unsigned kTileBytes = kTileColumns * kOutputRowBytes + kTileColumns / kWidth * kPadBytes;
  static_assert(kVectorBytes % sizeof(T) == 0 && kVectorBytes <= 16);
  static_assert(kRounds >= 1 && kRounds * kBlockThreads == kRowPacks * kColumnPacks);

  using Vector = ElementPack<T, kWidth>;
  using Given = Matrices<T, Index>;

  /// The tile in shared memory, in rows of the output.
  struct alignas(16) Tile {
    unsigned char bytes[kTileBytes];

    /// The element of output row `column` and input row `row`, and the pack that starts with it.
    __device__ T* at(unsigned column, unsigned row) {
      return reinterpret_cast<T*>(bytes + column * kOutputRowBytes + column / kWidth * kPadBytes + row * sizeof(T));
    }
    __device__ Vector& pack_at(unsigned column, unsigned row) { return *reinterpret_cast<Vector*>(at(column, row)); }
  };

  /// The addresses of a tile, and its extent in the matrix, at most a tile.
  struct Place {
    const T* in;
    T* out;
    unsigned rows, columns;

    __device__ bool is_full() const { return rows == kTileRows && columns == kTileColumns; }
  };

  /// The blocks of elements that a thread holds.
  struct Blocks {
    Vector packs[kRounds][kWidth];
  };

  struct Position {
    unsigned across, down;
  };

  /// The same value, unknown to the compiler, which would keep its multiples in registers from tile to tile.
  static __device__ long long launder(long long value) {
#ifndef HONE_HOST_DEVICE
    asm volatile("" : "+l"(value));
#endif
    return value;
  }

  /// The position of this thread's pack in a round, in a tile whose rows have kAcross packs.
  template <unsigned kAcross>
  static __device__ Position position(unsigned round) {
    if constexpr (kAcross <= kBlockThreads) {
      return {threadIdx.x % kAcross, threadIdx.x / kAcross + round * (kBlockThreads / kAcross)};
    } else {
      constexpr unsigned kRoundsPerRow = kAcross / kBlockThreads;
      return {threadIdx.x + round % kRoundsPerRow * kBlockThreads, round / kRoundsPerRow};
    }
  }

  static __device__ Place place(const Given& given, const TilePosition<Index>& tile) {
    const Index matrix = tile.matrix, row = tile.row * kTileRows, column = tile.column * kTileColumns;
    return {.in = given.in + given.in_offset(matrix, row, column),
            .out = given.out + given.out_offset(matrix, column, row),
            .rows = at_most(given.rows - row, kTileRows),
            .columns = at_most(given.columns - column, kTileColumns)};
  }

  /// True if the block of elements at `block` is completely inside the matrix.
  template <bool kFull>
  static __device__ bool is_inside(const Place& at, Position block) {
    return kFull || ((block.across + 1) * kWidth <= at.columns && (block.down + 1) * kWidth <= at.rows);
  }

  /// 2000 x 50256 u16, whose rows do not start with lines, take 140.9 us by fetches of whole lines and 142.4 without;
  /// 12288 x 4096 u32, whose rows do, take 138.5 and 138.8, and 139.2 by 256 bytes (H100, CUDA 13.0, 2026-11-26).
  static __device__ Vector load_pack(const Vector* from) {
    if constexpr (alignof(Vector) == 16 && kTileColumns * sizeof(T) >= 128) return load_and_fetch<128>(from);
    else return *from;
  }

  /// Loads all blocks of a thread: kRounds × kWidth vectorized loads in flight.
  template <bool kFull>
  static __device__ void load(const Place& at, long long pitch, Blocks& blocks) {
    unrolled<kRounds>([&](unsigned round) {
      const Position block = position<kRowPacks>(round);
      if (!is_inside<kFull>(at, block)) return;
      const T* const from = at.in + (block.down * kWidth) * pitch + block.across * kWidth;
      unrolled<kWidth>([&](unsigned i) {
        blocks.packs[round][i] = load_pack(reinterpret_cast<const Vector*>(from + i * pitch));
      });
    });
  }

  /// Transposes the blocks in registers and stores them in shared memory; copies those at the edge by elements.
  template <bool kFull>
  static __device__ void stage(const Place& at, long long pitch, const Blocks& blocks, Tile& tile) {
    unrolled<kRounds>([&](unsigned round) {
      const Position block = position<kRowPacks>(round);
      const unsigned row = block.down * kWidth, column = block.across * kWidth;
      if (is_inside<kFull>(at, block)) {
        Vector transposed[kWidth];
        transpose_block<T, kWidth>(blocks.packs[round], transposed);
        unrolled<kWidth>([&](unsigned i) { tile.pack_at(column + i, row) = transposed[i]; });
      } else if constexpr (!kFull && kWidth > 1) {
#pragma unroll 1
        for (unsigned r = row; r < row + kWidth && r < at.rows; ++r)
#pragma unroll 1
          for (unsigned c = column; c < column + kWidth && c < at.columns; ++c) *tile.at(c, r) = at.in[r * pitch + c];
      }
    });
  }

  /// Stores packs of output rows from shared memory: coalesced.
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
};

}  // namespace hone
