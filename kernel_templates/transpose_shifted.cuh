// Transposes matrices whose rows start at any element, with vectorized loads and full sectors on both sides.
//
// Input: a block loads the aligned packs that cover its part of each input row, and stages them unshifted in shared
// memory, each row in a slot of kRowBytes. For elements of 4 bytes (kPack = 4), 32 columns and a pitch that misaligns
// each row by 4 bytes more:
//
//                pack 0           pack 1             pack 8
//   row 0   | .   a0  a1  a2 | a3  a4  a5  a6 | … | a31 .   .   . |   misalignment:  4 bytes
//   row 1   | .   .   b0  b1 | b2  b3  b4  b5 | … | b30 b31 .   . |                  8
//   row 2   | .   .   .   c0 | c1  c2  c3  c4 | … | c29 c30 c31 . |                 12
//   row 3   | d0  d1  d2  d3 | d4  d5  d6  d7 | … | .   .   .   . |                  0
//   gap     |   |
//   row 4   | .   e0  e1  e2 | e3  e4  e5  e6 | … | e31 .   .   . |                  4: rows kPack apart are alike
//   …
//
// A dot is an element of a neighbouring tile, or undefined. The gap of kGapBytes behind each group of kPack rows moves
// the next group one bank further, so lanes that read a column in rows kPack apart have no bank conflicts.
//
// Output: each output row of a tile starts at the last sector (32 bytes) that starts at or before the tile. So no
// sector is written by two blocks, except at the ends of output rows; the price is kStep - 1 input rows that the
// previous tile loads, too. The lanes of a warp store consecutive packs of kLanesAcross output rows that are kStep
// apart, hence equally aligned: all find their elements at the same place of a 16-byte word, in rows kPack apart.
//
// Constraints: kTileRows, kTileColumns and kBlockThreads are powers of two, and both sides of a tile have at least 128
// bytes; with kOneAcross a tile is as wide as the matrix. Index holds the number of tiles plus one grid and every
// extent plus a tile and a sector.
#pragma once

#include "grid.cuh"
#include "shifted_tile.cuh"

namespace hone {

template <class T, unsigned kTileRows, unsigned kTileColumns, unsigned kBlockThreads, TileOrder kOrder, bool kOneAcross,
          class Index>
struct ShiftedTranspose {
  using Layout = ShiftedTile<T, kTileRows, kTileColumns, kBlockThreads, kOneAcross, Index>;
  using Given = typename Layout::Given;
  using Place = typename Layout::Place;
  using Tile = typename Layout::Slots;
  using Word = typename Layout::Word;
  using WordPack = typename Layout::WordPack;
  static constexpr unsigned kStep = Layout::kStep, kPack = Layout::kPack, kPackBytes = Layout::kPackBytes;
  static constexpr unsigned kRowBytes = Layout::kRowBytes, kWarps = Layout::kWarps;
  static constexpr unsigned kLanesDown = 8, kLanesAcross = 4;
  static constexpr unsigned kRunRows = kLanesDown * kPack;         ///< of the input, that a warp stores at once
  static constexpr unsigned kRunColumns = kLanesAcross * kStep;
  static constexpr unsigned kRunsDown = kTileRows / kRunRows;
  static constexpr unsigned kRuns = kRunsDown * (kTileColumns / kRunColumns);  ///< of equally aligned output rows
  static constexpr unsigned kWarpsPerStep = kWarps > kStep ? kWarps / kStep : 1;  ///< warps that share them
  static_assert(sizeof(T) <= 8 && kRunsDown >= 1 && kRuns >= kWarpsPerStep && kWarps >= 1);

  /// Gathers the elements of kPack consecutive rows into one pack. `places` are their addresses without the distance of
  /// the rows, which is a compile-time constant, as is `bytes` after unrolling.
  static __device__ WordPack gather(const Tile& tile, const unsigned (&places)[kPack], unsigned bytes) {
    Word elements[kPack];
    unrolled<kPack>([&](unsigned i) {
      elements[i] = *reinterpret_cast<const T*>(tile.bytes + places[i] + (i * kRowBytes + bytes));
    });
    WordPack pack;
    unrolled<WordPack::kElements>([&](unsigned w) {
      if constexpr (sizeof(T) == 1)
        pack.set(w, __byte_perm(__byte_perm(elements[4 * w], elements[4 * w + 1], 0x0040),
                                __byte_perm(elements[4 * w + 2], elements[4 * w + 3], 0x0040), 0x5410));
      else if constexpr (sizeof(T) == 2) pack.set(w, __byte_perm(elements[2 * w], elements[2 * w + 1], 0x5410));
      else pack.set(w, elements[w]);
    });
    return pack;
  }

  /// One 16-byte store. PTX, since NVRTC 13.0 splits some assignments of a pack into words.
  static __device__ void store_pack(T* to, const WordPack& pack) {
#ifdef HONE_HOST_DEVICE
    *reinterpret_cast<WordPack*>(to) = pack;
#else
    const auto raw = Words<WordPack>(pack);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(raw.words[0]),
                 "r"(raw.words[1]), "r"(raw.words[2]), "r"(raw.words[3]));
#endif
  }

  /// Stores the output rows of a tile, each from the last sector that starts at or before the tile.
  template <bool kFull>
  static __device__ void store(const Given& given, const Place& at, Tile& tile) {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned in_pitch_bytes = static_cast<unsigned>(given.in_pitch) * static_cast<unsigned>(sizeof(T));
    const unsigned in = Given::low_bits(given.in) + static_cast<unsigned>(at.in);
#pragma unroll 1
    for (unsigned step = warp % kStep; step < kStep; step += kWarps < kStep ? kWarps : kStep) {
      const unsigned column = step + lane / kLanesDown * kStep;
      T* const row_out = at.out + column * given.out_pitch;
      const unsigned back = Given::low_bits(row_out) % Layout::kSectorBytes / static_cast<unsigned>(sizeof(T));
      const unsigned row = kStep - back + lane % kLanesDown * kPack;
      const unsigned first_place = row * kRowBytes + column * static_cast<unsigned>(sizeof(T));
      unsigned address = in + row * in_pitch_bytes;
      unsigned places[kPack];
#pragma unroll
      for (unsigned i = 0; i < kPack; ++i, address += in_pitch_bytes)
        places[i] = first_place + (row + i) / kPack * Layout::kGapBytes + address % kPackBytes;
#pragma unroll(kFull ? 8 : 1)
      for (unsigned round = 0; round < kRuns; round += kWarpsPerStep) {
        const unsigned run = round + warp / kStep % kWarpsPerStep;
        const unsigned down = run % kRunsDown * kRunRows, across = run / kRunsDown * kRunColumns;
        const WordPack pack =
            gather(tile, places, down / kPack * Layout::kGroupBytes + across * static_cast<unsigned>(sizeof(T)));
        T* const to = row_out + across * given.out_pitch + (static_cast<int>(row + down) - static_cast<int>(kStep));
        if constexpr (kFull) store_pack(to, pack);
        else store_at_ends(at, column + across, row + down, pack, to);
      }
    }
  }

  static __device__ void store_at_ends(const Place& at, unsigned column, unsigned row, const WordPack& pack, T* to) {
    if (column >= at.columns) return;
    if (row >= at.first && row + kPack <= at.end) {
      store_pack(to, pack);
      return;
    }
    const auto elements = bits_as<Pack<T, kPack>>(pack);
    unrolled<kPack>([&](unsigned i) {
      if (row + i >= at.first && row + i < at.end) to[i] = elements[i];
    });
  }

  static __device__ void transpose(const TransposeArguments& arguments) {
    const Given given{arguments};
    __shared__ Tile tile;
    pdl_release_then_wait();
    const Index tile_rows = (given.rows + (kStep - 1) + (kTileRows - 1)) / kTileRows;
    const Index tile_columns = (given.columns + (kTileColumns - 1)) / kTileColumns;
    const Index tiles = given.batch * tile_rows * tile_columns;
    const long long end = given.in_bytes();
    for (Index index = blockIdx.x; index < tiles; index += gridDim.x) {
      const Place at = Layout::place(given, tile_position<kOrder>(tile_rows, tile_columns, index));
      typename Layout::Loaded loaded;
      if (at.is_inside) Layout::template load<true>(given, at, end, loaded);
      else Layout::template load<false>(given, at, end, loaded);
      if (index != blockIdx.x) __syncthreads();  // the previous tile has been stored
      Layout::stage(loaded, tile);
      __syncthreads();
      if (!at.is_inside) {
        Layout::stage_ends(given, at, end, tile);
        __syncthreads();
      }
      if (at.is_full) store<true>(given, at, tile);
      else store<false>(given, at, tile);
    }
  }
};

}  // namespace hone
