// Transposes matrices of which not all rows start at multiples of 16 bytes: as transpose.cuh, with packs of 16 bytes
// and whole sectors on both sides all the same.
//
// Input: a block loads the aligned packs that cover its piece of each input row, and keeps them in shared memory as
// they lie, so that a row's first element is some bytes behind the beginning of its slot. Output: where an output row's
// piece begins is up to that row, at the last sector (32 bytes) that starts at or before the tile. No sector is then
// written by two blocks, but at the ends of output rows; for the price of kStep - 1 input rows, which the tile before
// has, too.
//
// Output rows kStep apart are equally aligned, and so are input rows kPack apart. The lanes of a warp store packs that
// follow each other in kLanesAcross output rows kStep apart, so they all find their elements at the same place of a
// 16-byte word, kPack rows apart; groups of kPack rows start one bank apart, and no two lanes meet in a bank.
//
// Constraints: kTileRows, kTileColumns and kBlockThreads are powers of two; an element has at most 8 bytes, and both
// sides of a tile at least 128; there are no more warps than a tile has runs. Index holds the number of tiles plus one
// grid and every extent plus a tile and a sector.
#pragma once

#include "element.cuh"
#include "grid.cuh"
#include "tile_order.cuh"

namespace hone {

template <class T, unsigned kTileRows, unsigned kTileColumns, unsigned kBlockThreads, TileOrder kOrder, class Index>
struct ShiftedTranspose {
  static constexpr unsigned kSectorBytes = 32, kPackBytes = 16;
  static constexpr unsigned kStep = kSectorBytes / sizeof(T);
  static constexpr unsigned kPack = kPackBytes / sizeof(T);  // elements
  static constexpr unsigned kStagedRows = kTileRows + kStep;  // of the input; the first is never used
  static constexpr unsigned kRowPacks = kTileColumns / kPack + 1;
  static constexpr unsigned kRowBytes = kRowPacks * kPackBytes;
  static constexpr unsigned kGroups = kStagedRows / kPack;
  static constexpr unsigned kGapBytes = sizeof(T) < 4 ? 4 : sizeof(T);  // between groups
  static constexpr unsigned kGroupBytes = kPack * kRowBytes + kGapBytes;
  static constexpr unsigned kWarps = kBlockThreads / 32;

  // A warp loads kSpanPacks neighbouring packs of a row at once, in four rows kPack apart: equally aligned ones, whose
  // places in shared memory follow from one another by adding a constant. The last pack of each row is loaded by a
  // thread a row.
  static constexpr unsigned kSpanPacks = 8, kSpanRows = 4;
  static constexpr unsigned kSpans = kTileColumns / (kSpanPacks * kPack);
  static constexpr unsigned kPhases = kWarps < kPack ? kPack / kWarps : 1;       // rows of a group that a warp has
  static constexpr unsigned kPhaseWarps = kWarps > kPack ? kWarps / kPack : 1;   // that share the groups
  static constexpr unsigned kRoundGroups = kSpanRows * kPhaseWarps;
  static constexpr unsigned kRounds = (kGroups + kRoundGroups - 1) / kRoundGroups;
  static constexpr unsigned kLastPacks = (kStagedRows + kBlockThreads - 1) / kBlockThreads;
  static constexpr unsigned kLoads = kPhases * kRounds * kSpans + kLastPacks;

  static constexpr unsigned kLanesDown = 8, kLanesAcross = 4;
  static constexpr unsigned kRunRows = kLanesDown * kPack;         // of the input, that a warp stores at once
  static constexpr unsigned kRunColumns = kLanesAcross * kStep;
  static constexpr unsigned kRunsDown = kTileRows / kRunRows;
  static constexpr unsigned kRuns = kRunsDown * (kTileColumns / kRunColumns);  // of equally aligned output rows
  static constexpr unsigned kWarpsPerStep = kWarps > kStep ? kWarps / kStep : 1;  // warps that share such runs
  static_assert(sizeof(T) <= 8 && kRunsDown >= 1 && kRuns >= kWarpsPerStep && kWarps >= 1);

  using Given = Matrices<T, Index>;
  using Word = typename Select<sizeof(T) == 8, unsigned long long, unsigned>::type;
  using WordPack = Pack<Word, kPackBytes / sizeof(Word)>;

  struct alignas(16) Tile {
    unsigned char bytes[kGroups * kGroupBytes];

    __device__ unsigned char* slot(unsigned row) { return bytes + row * kRowBytes + row / kPack * kGapBytes; }
  };

  /// What a tile is of its matrix. Held rows are counted from kStep rows before the tile's first one.
  struct Place {
    long long in;               ///< bytes from the input's beginning to the first held row's piece, were it there
    T* out;                     ///< the output of the tile's first row and column
    unsigned first, end;        ///< the held rows that there are
    unsigned columns;           ///< that there are
    bool is_full;               ///< the matrix has all elements that the tile's packs of the output may need
    bool is_inside;             ///< all packs of the input lie inside the matrices
  };

  /// What a thread loads of a tile.
  struct Loaded {
    WordPack spans[kPhases][kRounds][kSpans];
    WordPack last[kLastPacks];
  };

  /// A pack that starts `slot_bytes` after the beginning of a row's slot, where the row's first element is `shift`
  /// after it.
  struct Source {
    long long offset;  ///< in bytes, from the beginning of the input
    unsigned shift, slot_bytes;

    __device__ Source(const Given& given, const Place& at, unsigned row, unsigned slot_bytes_)
        : offset(at.in + row * (given.in_pitch * static_cast<long long>(sizeof(T)))),
          shift((low_bits(given.in) + static_cast<unsigned>(offset)) % kPackBytes),
          slot_bytes(slot_bytes_) {
      offset += static_cast<long long>(slot_bytes) - shift;
    }

    /// Whether the tile has elements in the pack `further` bytes behind.
    __device__ bool is_needed(const Place& at, unsigned further) const {
      return slot_bytes + further < shift + at.columns * static_cast<unsigned>(sizeof(T));
    }
  };

  static __device__ unsigned low_bits(const void* pointer) {
    return static_cast<unsigned>(reinterpret_cast<unsigned long long>(pointer));
  }

  static __device__ long long end_of(const Given& given) {
    const long long rows = static_cast<long long>(given.batch) * static_cast<long long>(given.rows);
    return ((rows - 1) * given.in_pitch + static_cast<long long>(given.columns)) * static_cast<long long>(sizeof(T));
  }

  static __device__ Place place(const Given& given, const TilePosition<Index>& tile) {
    const Index row = tile.row * kTileRows, column = tile.column * kTileColumns;
    const Index rows = given.rows + kStep - row, columns = given.columns - column;  // of rows, held ones
    const auto matrix = static_cast<long long>(tile.matrix);
    const long long first_in = matrix * static_cast<long long>(given.rows) + static_cast<long long>(row) - kStep;
    const long long first_out = matrix * static_cast<long long>(given.columns) + static_cast<long long>(column);
    Place at;
    at.in = (first_in * given.in_pitch + static_cast<long long>(column)) * static_cast<long long>(sizeof(T));
    at.out = given.out + (first_out * given.out_pitch + static_cast<long long>(row));
    at.first = row == 0 ? kStep : 1;
    at.end = rows < kStagedRows ? static_cast<unsigned>(rows) : kStagedRows;
    at.columns = columns < kTileColumns ? static_cast<unsigned>(columns) : kTileColumns;
    at.is_full = row != 0 && at.end == kStagedRows && at.columns == kTileColumns;
    const long long pitch_bytes = given.in_pitch * static_cast<long long>(sizeof(T));
    at.is_inside = at.in + at.first * pitch_bytes >= kPackBytes &&
                   at.in + (at.end - 1) * pitch_bytes + static_cast<long long>(kRowBytes) <= end_of(given);
    return at;
  }

  static __device__ bool is_inside(long long offset, long long end) {
    return static_cast<unsigned long long>(offset) <= static_cast<unsigned long long>(end - kPackBytes);
  }

  /// The held row of which a thread loads its first packs in a phase; those of other turns are kRoundGroups groups
  /// further.
  static __device__ unsigned first_row(unsigned phase) {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned group = warp / kPack * kSpanRows + lane / kSpanPacks;
    return group * kPack + warp % kPack + phase * kWarps;
  }
  static __device__ unsigned first_bytes() { return threadIdx.x % kSpanPacks * kPackBytes; }

  static __device__ bool is_there(const Place& at, unsigned row) { return row - at.first < at.end - at.first; }

  /// Nothing where nothing is needed. `end`: of the matrices, in bytes; at least a pack.
  template <bool kInside>
  static __device__ void load(const Given& given, const Place& at, long long end, Loaded& loaded) {
    const auto* const in = reinterpret_cast<const unsigned char*>(given.in);
    const auto load_if = [&](bool is_needed, long long offset) {
      return is_needed && (kInside || is_inside(offset, end)) ? *reinterpret_cast<const WordPack*>(in + offset)
                                                              : WordPack{};
    };
#pragma unroll
    for (unsigned phase = 0; phase < kPhases; ++phase) {
      const unsigned row = first_row(phase);
      Source from(given, at, row, first_bytes());
#pragma unroll
      for (unsigned round = 0; round < kRounds; ++round) {
        const bool has_row = is_there(at, row + round * (kRoundGroups * kPack));
#pragma unroll
        for (unsigned span = 0; span < kSpans; ++span) {
          const unsigned further = span * (kSpanPacks * kPackBytes);
          loaded.spans[phase][round][span] = load_if(has_row && from.is_needed(at, further), from.offset + further);
        }
        from.offset += given.in_pitch * static_cast<long long>(kRoundGroups * kPack * sizeof(T));
      }
    }
#pragma unroll
    for (unsigned round = 0; round < kLastPacks; ++round) {
      const unsigned row = threadIdx.x + round * kBlockThreads;
      const Source from(given, at, row, kRowBytes - kPackBytes);
      loaded.last[round] = load_if(is_there(at, row) && from.is_needed(at, 0), from.offset);
    }
  }

  static __device__ void stage_pack(unsigned char* to, const WordPack& pack) {
#pragma unroll
    for (unsigned i = 0; i < WordPack::kElements; ++i) reinterpret_cast<Word*>(to)[i] = pack[i];
  }

  static __device__ void stage(const Loaded& loaded, Tile& tile) {
#pragma unroll
    for (unsigned phase = 0; phase < kPhases; ++phase) {
      const unsigned row = first_row(phase);
      unsigned char* const to = tile.slot(row) + first_bytes();
#pragma unroll
      for (unsigned round = 0; round < kRounds; ++round) {
        if ((round + 1) * kRoundGroups > kGroups && row + round * (kRoundGroups * kPack) >= kStagedRows) continue;
#pragma unroll
        for (unsigned span = 0; span < kSpans; ++span)
          stage_pack(to + round * (kRoundGroups * kGroupBytes) + span * (kSpanPacks * kPackBytes),
                     loaded.spans[phase][round][span]);
      }
    }
#pragma unroll
    for (unsigned round = 0; round < kLastPacks; ++round) {
      const unsigned row = threadIdx.x + round * kBlockThreads;
      if (row < kStagedRows) stage_pack(tile.slot(row) + (kRowBytes - kPackBytes), loaded.last[round]);
    }
  }

  /// What there is of packs that reach beyond the matrices, of which nothing was loaded.
  static __device__ void stage_ends(const Given& given, const Place& at, long long end, Tile& tile) {
#pragma unroll 1
    for (unsigned index = threadIdx.x; index < kStagedRows * kRowPacks; index += kBlockThreads) {
      const unsigned row = index / kRowPacks;
      const Source from(given, at, row, index % kRowPacks * kPackBytes);
      if (!is_there(at, row) || !from.is_needed(at, 0) || is_inside(from.offset, end)) continue;
      auto* const to = reinterpret_cast<T*>(tile.slot(row) + from.slot_bytes);
      const long long first = from.offset / static_cast<long long>(sizeof(T));
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        if (first + e >= 0 && (first + e) * static_cast<long long>(sizeof(T)) < end) to[e] = given.in[first + e];
    }
  }

  /// Elements of kPack rows that follow each other, as the words of one pack. `places` are those of the elements but
  /// for the rows' distance, which, with `bytes`, is known when this is compiled.
  static __device__ WordPack gather(const Tile& tile, const unsigned (&places)[kPack], unsigned bytes) {
    Word elements[kPack];
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i)
      elements[i] = *reinterpret_cast<const T*>(tile.bytes + places[i] + (i * kRowBytes + bytes));
    WordPack pack;
#pragma unroll
    for (unsigned w = 0; w < WordPack::kElements; ++w) {
      if constexpr (sizeof(T) == 1)
        pack.set(w, __byte_perm(__byte_perm(elements[4 * w], elements[4 * w + 1], 0x0040),
                                __byte_perm(elements[4 * w + 2], elements[4 * w + 3], 0x0040), 0x5410));
      else if constexpr (sizeof(T) == 2) pack.set(w, __byte_perm(elements[2 * w], elements[2 * w + 1], 0x5410));
      else pack.set(w, elements[w]);
    }
    return pack;
  }

  /// In one access, which the assignment of a pack is not always here: NVRTC 13.0 divides some into words.
  static __device__ void store_pack(T* to, const WordPack& pack) {
#ifdef HONE_HOST_DEVICE
    *reinterpret_cast<WordPack*>(to) = pack;
#else
    const auto raw = Words<WordPack>::of(pack);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(raw.words[0]),
                 "r"(raw.words[1]), "r"(raw.words[2]), "r"(raw.words[3]));
#endif
  }

  template <bool kFull>
  static __device__ void store(const Given& given, const Place& at, Tile& tile) {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned in_pitch_bytes = static_cast<unsigned>(given.in_pitch) * static_cast<unsigned>(sizeof(T));
    const unsigned in = low_bits(given.in) + static_cast<unsigned>(at.in);
#pragma unroll 1
    for (unsigned step = warp % kStep; step < kStep; step += kWarps < kStep ? kWarps : kStep) {
      const unsigned column = step + lane / kLanesDown * kStep;
      T* const row_out = at.out + column * given.out_pitch;
      const unsigned back = low_bits(row_out) % kSectorBytes / static_cast<unsigned>(sizeof(T));
      const unsigned row = kStep - back + lane % kLanesDown * kPack;
      const unsigned first_place = row * kRowBytes + column * static_cast<unsigned>(sizeof(T));
      unsigned address = in + row * in_pitch_bytes;
      unsigned places[kPack];
#pragma unroll
      for (unsigned i = 0; i < kPack; ++i, address += in_pitch_bytes)
        places[i] = first_place + (row + i) / kPack * kGapBytes + address % kPackBytes;
#pragma unroll(kFull ? 8 : 1)
      for (unsigned round = 0; round < kRuns; round += kWarpsPerStep) {
        const unsigned run = round + warp / kStep % kWarpsPerStep;
        const unsigned down = run % kRunsDown * kRunRows, across = run / kRunsDown * kRunColumns;
        const WordPack pack =
            gather(tile, places, down / kPack * kGroupBytes + across * static_cast<unsigned>(sizeof(T)));
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
    T elements[kPack];
    memcpy(elements, &pack, sizeof(pack));
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i)
      if (row + i >= at.first && row + i < at.end) to[i] = elements[i];
  }

  static __device__ void transpose(const Given& given) {
    __shared__ Tile tile;
    pdl_release_then_wait();
    const Index tile_rows = (given.rows + (kStep - 1) + (kTileRows - 1)) / kTileRows;
    const Index tile_columns = (given.columns + (kTileColumns - 1)) / kTileColumns;
    const Index tiles = given.batch * tile_rows * tile_columns;
    const long long end = end_of(given);
    for (Index index = blockIdx.x; index < tiles; index += gridDim.x) {
      const Place at = place(given, tile_position<kOrder>(tile_rows, tile_columns, index));
      Loaded loaded;
      if (at.is_inside) load<true>(given, at, end, loaded);
      else load<false>(given, at, end, loaded);
      if (index != blockIdx.x) __syncthreads();  // the tile before has left
      stage(loaded, tile);
      __syncthreads();
      if (!at.is_inside) {
        stage_ends(given, at, end, tile);
        __syncthreads();
      }
      if (at.is_full) store<true>(given, at, tile);
      else store<false>(given, at, tile);
    }
  }
};

}  // namespace hone
