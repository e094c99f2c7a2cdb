// StripTile: strips of matrices with one short side, and the packs of each thread, for transpose_strips.cuh.
#pragma once

#include "staged_run.cuh"
#include "tile_order.cuh"

namespace hone {

template <class T, unsigned kTileBytes, unsigned kMostAcross, unsigned kBlockThreads, bool kFewRows, class Index>
struct StripTile {
  static constexpr unsigned kSize = sizeof(T), kPackBytes = 16, kSectorBytes = 32, kLineBytes = 128;
  static constexpr unsigned kPack = kPackBytes / kSize;  ///< elements
  /// Loaded pieces are extended to whole sectors. Stored ones start with a line: 1048577 x 31 u16 take 48.4 us so, and
  /// 49.2 if they start with a sector (H100, CUDA 13.0, 2026-11-26).
  static constexpr unsigned kStartBytes = kFewRows ? kSectorBytes : kLineBytes, kStart = kStartBytes / kSize;
  static constexpr unsigned kMarginPacks = kMostAcross * kStartBytes / kPackBytes;  ///< of all pieces
  static constexpr unsigned kStripPacks = kTileBytes / kPackBytes;
  static constexpr unsigned kStores = (kStripPacks + kBlockThreads - 1) / kBlockThreads;
  static constexpr unsigned kLoads = (kStripPacks + kMarginPacks + kBlockThreads - 1) / kBlockThreads;
  static_assert(kSize <= 8 && kTileBytes >= kMostAcross * kLineBytes);

  using Given = Matrices<T, Index>;
  using ElementPack = Pack<T, kPack>;
  using Run = StagedRun<T, kBlockThreads, kFewRows ? kStores : kLoads>;

  struct Tile {
    ElementPack packs[kMarginPacks + kStripPacks + 1];

    /// Where the run of `global` begins. Scattered packs may reach over both of its ends.
    __device__ T* run(const T* global) { return Run::place(packs + (kFewRows ? kMarginPacks / 2 : 0), global); }
  };

  struct Strip {
    Index matrix, start;  ///< of the long side
    unsigned length;      ///< that exists; negative behind the last row, of which elements are left to store
  };

  /// The packs of a thread in pieces of `length` elements, and in the sector behind each if kFewRows.
  struct Share {
    unsigned across, length;
    unsigned log_lanes = across % 2 != 0 ? 3 : across % 4 != 0 ? 2 : 1;
    unsigned first = threadIdx.x >> log_lanes, step = kBlockThreads >> log_lanes;
    unsigned first_line = first / across, lines = step / across;

    static __device__ Share of(unsigned across) {
      return {across, kTileBytes / kLineBytes / across * (kLineBytes / kSize)};
    }

    /// Calls act(round, piece, pack) for all packs.
    template <unsigned kRounds>
    __device__ void for_packs(const auto& act) const {
      const unsigned lane = threadIdx.x % (1u << log_lanes), packs = length / kPack;
      unsigned piece = first - first_line * across, line = first_line;
      unrolled<kRounds>([&](unsigned round) {
        const unsigned pack = (line << log_lanes) + lane;
        const unsigned behind = round * kBlockThreads + threadIdx.x - across * packs;
        if (pack < packs) act(round, piece, pack);
        else if (kFewRows && behind < 2 * across) act(round, behind / 2, packs + behind % 2);
        piece += step - lines * across;
        line += lines;
        if (piece >= across) {
          piece -= across;
          ++line;
        }
      });
    }
  };
};

}  // namespace hone
