// The tiles of transpose_shifted.cuh in shared memory, and how they are loaded.
#pragma once

#include "line_loads.cuh"
#include "tile_order.cuh"

namespace hone {

template <class T, unsigned kTileRows, unsigned kTileColumns, unsigned kBlockThreads, bool kOneAcross, class Index>
struct ShiftedTile {
  static constexpr unsigned kSectorBytes = 32, kPackBytes = 16;
  static constexpr long long kBytes = sizeof(T);
  static constexpr unsigned kStep = kSectorBytes / sizeof(T);
  static constexpr unsigned kPack = kPackBytes / sizeof(T);  ///< elements
  static constexpr unsigned kStagedRows = kTileRows + kStep;  ///< of the input; the first is never used
  static constexpr unsigned kRowPacks = kTileColumns / kPack + 1;
  static constexpr unsigned kRowBytes = kRowPacks * kPackBytes;
  static constexpr unsigned kGroups = kStagedRows / kPack;
  static constexpr unsigned kGapBytes = sizeof(T) < 4 ? 4 : sizeof(T);
  static constexpr unsigned kGroupBytes = kPack * kRowBytes + kGapBytes;
  static constexpr unsigned kWarps = kBlockThreads / 32;

  using Given = Matrices<T, Index>;
  using Word = typename Select<sizeof(T) == 8, unsigned long long, unsigned>::type;
  using WordPack = Pack<Word, kPackBytes / sizeof(Word)>;

  struct alignas(16) Slots {
    unsigned char bytes[kGroups * kGroupBytes];

    __device__ unsigned char* slot(unsigned row) { return bytes + row * kRowBytes + row / kPack * kGapBytes; }
  };

  /// A tile in its matrix. Staged rows are counted from kStep rows before the tile's first row.
  struct Place {
    long long in;         ///< bytes from the start of the input to staged row 0, which need not exist
    T* out;               ///< of the tile's first row and column
    unsigned first, end;  ///< the staged rows [first, end) exist
    unsigned columns;     ///< that exist
    bool is_full;         ///< the matrix has all elements of the tile's output packs
    bool is_inside;       ///< all input packs are inside the batch of matrices
  };

  static __device__ Place place(const Given& given, const TilePosition<Index>& tile) {
    const Index row = tile.row * kTileRows, column = tile.column * kTileColumns;
    const long long pitch_bytes = given.in_pitch * kBytes;
    Place at;
    at.in = given.in_offset(tile.matrix, row, column) * kBytes - kStep * pitch_bytes;
    at.out = given.out + given.out_offset(tile.matrix, column, row);
    at.first = row == 0 ? kStep : 1;
    at.end = at_most(given.rows + kStep - row, kStagedRows);
    at.columns = at_most(given.columns - column, kTileColumns);
    at.is_full = row != 0 && at.end == kStagedRows && at.columns == kTileColumns;
    at.is_inside = at.in + at.first * pitch_bytes >= kPackBytes &&
                   at.in + (at.end - 1) * pitch_bytes + kRowBytes <= given.in_bytes();
    return at;
  }

  /// True if the pack at `offset` is inside the input, which ends at `end`, in bytes.
  static __device__ bool is_inside(long long offset, long long end) {
    return offset >= 0 && offset + kPackBytes <= end;
  }

  static __device__ bool is_there(const Place& at, unsigned row) { return row - at.first < at.end - at.first; }

  // A warp loads kSpanPacks neighbouring packs of each of four rows at once. These rows are kPack apart: equally
  // aligned, at a constant distance in shared memory. The last pack of each row is loaded by one thread per row.
  static constexpr unsigned kSpanPacks = 8, kSpanRows = 4;
  static constexpr unsigned kSpans = kTileColumns / (kSpanPacks * kPack);
  static constexpr unsigned kPhases = kWarps < kPack ? kPack / kWarps : 1;  ///< rows of a group per warp
  static constexpr unsigned kRoundGroups = kSpanRows * (kWarps > kPack ? kWarps / kPack : 1);
  static constexpr unsigned kRounds = (kGroups + kRoundGroups - 1) / kRoundGroups;
  static constexpr unsigned kLastPacks = (kStagedRows + kBlockThreads - 1) / kBlockThreads;

  /// The packs that a thread loads, in registers.
  struct Loaded {
    WordPack spans[kPhases][kRounds][kSpans];
    WordPack last[kLastPacks];
  };

  /// The pack `slot_bytes` behind the start of a row's slot, whose first element is `shift` bytes behind that start.
  struct Source {
    const Given& given;
    const Place& at;
    unsigned row, slot_bytes;
    long long start = at.in + row * (given.in_pitch * kBytes);
    unsigned shift = (Given::low_bits(given.in) + static_cast<unsigned>(start)) % kPackBytes;
    long long offset = start + (static_cast<long long>(slot_bytes) - shift);  ///< in bytes, from the start of the input

    /// True if the tile has elements in the pack `further` bytes behind this one.
    __device__ bool is_needed(unsigned further) const {
      return slot_bytes + further < shift + at.columns * static_cast<unsigned>(sizeof(T));
    }
  };

  /// The staged row of a thread's first packs in a phase; in each round it moves on by kRoundGroups groups.
  static __device__ unsigned first_row(unsigned phase) {
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned group = warp / kPack * kSpanRows + lane / kSpanPacks;
    return group * kPack + warp % kPack + phase * kWarps;
  }
  static __device__ unsigned first_bytes() { return threadIdx.x % kSpanPacks * kPackBytes; }

  /// 12289 x 4097 u32 take 142.9 us by fetches of 256 bytes, 144.6 by 128, and 145.7 by neither; 2000 x 50257 u16 take
  /// 141.2, 141.8 and 144.7 (H100, CUDA 13.0, 2026-11-26). Where no tile is beside another, no lines are shared, and
  /// what is fetched may be the gaps between rows.
  static __device__ WordPack load_pack(const WordPack* from) {
    if constexpr (kOneAcross) return *from;
    else return load_and_fetch<256>(from);
  }

  /// Loads only packs that the tile needs. `end` is in_bytes() of the input.
  template <bool kInside>
  static __device__ void load(const Given& given, const Place& at, long long end, Loaded& loaded) {
    const auto* const in = reinterpret_cast<const unsigned char*>(given.in);
    const auto load_if = [&](bool is_needed, long long offset) {
      const bool loads = is_needed && (kInside || is_inside(offset, end));
      return loads ? load_pack(reinterpret_cast<const WordPack*>(in + offset)) : WordPack{};
    };
    unrolled<kPhases>([&](unsigned phase) {
      const unsigned row = first_row(phase);
      Source from{given, at, row, first_bytes()};
      unrolled<kRounds>([&](unsigned round) {
        const bool has_row = is_there(at, row + round * (kRoundGroups * kPack));
        unrolled<kSpans>([&](unsigned span) {
          const unsigned further = span * (kSpanPacks * kPackBytes);
          loaded.spans[phase][round][span] = load_if(has_row && from.is_needed(further), from.offset + further);
        });
        from.offset += given.in_pitch * (kRoundGroups * kPack * kBytes);
      });
    });
    unrolled<kLastPacks>([&](unsigned round) {
      const unsigned row = threadIdx.x + round * kBlockThreads;
      const Source from{given, at, row, kRowBytes - kPackBytes};
      loaded.last[round] = load_if(is_there(at, row) && from.is_needed(0), from.offset);
    });
  }

  /// Slots are aligned to a Word only.
  static __device__ void stage_pack(unsigned char* to, const WordPack& pack) {
    unrolled<WordPack::kElements>([&](unsigned i) { reinterpret_cast<Word*>(to)[i] = pack[i]; });
  }

  /// Stores the loaded packs in their slots.
  static __device__ void stage(const Loaded& loaded, Slots& tile) {
    unrolled<kPhases>([&](unsigned phase) {
      const unsigned row = first_row(phase);
      unsigned char* const to = tile.slot(row) + first_bytes();
      unrolled<kRounds>([&](unsigned round) {
        if ((round + 1) * kRoundGroups > kGroups && row + round * (kRoundGroups * kPack) >= kStagedRows) return;
        unrolled<kSpans>([&](unsigned span) {
          stage_pack(to + round * (kRoundGroups * kGroupBytes) + span * (kSpanPacks * kPackBytes),
                     loaded.spans[phase][round][span]);
        });
      });
    });
    unrolled<kLastPacks>([&](unsigned round) {
      const unsigned row = threadIdx.x + round * kBlockThreads;
      if (row < kStagedRows) stage_pack(tile.slot(row) + (kRowBytes - kPackBytes), loaded.last[round]);
    });
  }

  /// Copies the elements of packs that reach outside of the input, which load() omits.
  static __device__ void stage_ends(const Given& given, const Place& at, long long end, Slots& tile) {
#pragma unroll 1
    for (unsigned index = threadIdx.x; index < kStagedRows * kRowPacks; index += kBlockThreads) {
      const unsigned row = index / kRowPacks;
      const Source from{given, at, row, index % kRowPacks * kPackBytes};
      if (!is_there(at, row) || !from.is_needed(0) || is_inside(from.offset, end)) continue;
      auto* const to = reinterpret_cast<T*>(tile.slot(row) + from.slot_bytes);
      const long long first = from.offset / kBytes;
      unrolled<kPack>([&](unsigned e) {
        if (first + e >= 0 && (first + e) * kBytes < end) to[e] = given.in[first + e];
      });
    }
  }
};

}  // namespace hone
