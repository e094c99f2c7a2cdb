// The load side of transpose_shifted.cuh: aligned packs of input rows, from global memory through registers into their
// slots in shared memory.
#pragma once

#include "shifted_tile.cuh"

namespace hone {

template <class T, unsigned kTileRows, unsigned kTileColumns, unsigned kBlockThreads, class Index>
struct ShiftedLoad {
  using Layout = ShiftedTile<T, kTileRows, kTileColumns, Index>;
  using Given = typename Layout::Given;
  using Place = typename Layout::Place;
  using Slots = typename Layout::Slots;
  using Word = typename Layout::Word;
  using WordPack = typename Layout::WordPack;
  static constexpr unsigned kPackBytes = Layout::kPackBytes, kPack = Layout::kPack;
  static constexpr unsigned kRowPacks = Layout::kRowPacks, kRowBytes = Layout::kRowBytes;
  static constexpr unsigned kStagedRows = Layout::kStagedRows;
  static constexpr unsigned kGroups = Layout::kGroups, kGroupBytes = Layout::kGroupBytes;
  static constexpr unsigned kWarps = kBlockThreads / 32;

  // A warp loads kSpanPacks neighbouring packs of each of four rows at once. These rows are kPack apart, so they are
  // equally aligned and their addresses in shared memory differ by a constant. The last pack of each row is loaded by
  // one thread per row.
  static constexpr unsigned kSpanPacks = 8, kSpanRows = 4;
  static constexpr unsigned kSpans = kTileColumns / (kSpanPacks * kPack);
  static constexpr unsigned kPhases = kWarps < kPack ? kPack / kWarps : 1;       ///< rows of a group per warp
  static constexpr unsigned kPhaseWarps = kWarps > kPack ? kWarps / kPack : 1;   ///< warps that share the groups
  static constexpr unsigned kRoundGroups = kSpanRows * kPhaseWarps;
  static constexpr unsigned kRounds = (kGroups + kRoundGroups - 1) / kRoundGroups;
  static constexpr unsigned kLastPacks = (kStagedRows + kBlockThreads - 1) / kBlockThreads;

  /// The packs that a thread loads, in registers.
  struct Loaded {
    WordPack spans[kPhases][kRounds][kSpans];
    WordPack last[kLastPacks];
  };

  /// The pack `slot_bytes` behind the start of a row's slot; the row's first element is `shift` bytes behind that
  /// start.
  struct Source {
    long long offset;  ///< in bytes, from the start of the input
    unsigned shift, slot_bytes;

    __device__ Source(const Given& given, const Place& at, unsigned row, unsigned slot_bytes_)
        : offset(at.in + row * (given.in_pitch * static_cast<long long>(sizeof(T)))),
          shift((Layout::low_bits(given.in) + static_cast<unsigned>(offset)) % kPackBytes),
          slot_bytes(slot_bytes_) {
      offset += static_cast<long long>(slot_bytes) - shift;
    }

    /// Whether the tile has elements in the pack `further` bytes behind this one.
    __device__ bool is_needed(const Place& at, unsigned further) const {
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

  /// Loads only packs that the tile needs. `end` is end_of() the input, at least a pack.
  template <bool kInside>
  static __device__ void load(const Given& given, const Place& at, long long end, Loaded& loaded) {
    const auto* const in = reinterpret_cast<const unsigned char*>(given.in);
    const auto load_if = [&](bool is_needed, long long offset) {
      return is_needed && (kInside || Layout::is_inside(offset, end))
                 ? *reinterpret_cast<const WordPack*>(in + offset)
                 : WordPack{};
    };
#pragma unroll
    for (unsigned phase = 0; phase < kPhases; ++phase) {
      const unsigned row = first_row(phase);
      Source from(given, at, row, first_bytes());
#pragma unroll
      for (unsigned round = 0; round < kRounds; ++round) {
        const bool has_row = Layout::is_there(at, row + round * (kRoundGroups * kPack));
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
      loaded.last[round] = load_if(Layout::is_there(at, row) && from.is_needed(at, 0), from.offset);
    }
  }

  static __device__ void stage_pack(unsigned char* to, const WordPack& pack) {
#pragma unroll
    for (unsigned i = 0; i < WordPack::kElements; ++i) reinterpret_cast<Word*>(to)[i] = pack[i];
  }

  /// Stores the loaded packs in their slots.
  static __device__ void stage(const Loaded& loaded, Slots& tile) {
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

  /// Copies the elements of packs that reach outside of the input, which load() omits.
  static __device__ void stage_ends(const Given& given, const Place& at, long long end, Slots& tile) {
#pragma unroll 1
    for (unsigned index = threadIdx.x; index < kStagedRows * kRowPacks; index += kBlockThreads) {
      const unsigned row = index / kRowPacks;
      const Source from(given, at, row, index % kRowPacks * kPackBytes);
      if (!Layout::is_there(at, row) || !from.is_needed(at, 0) || Layout::is_inside(from.offset, end)) continue;
      auto* const to = reinterpret_cast<T*>(tile.slot(row) + from.slot_bytes);
      const long long first = from.offset / static_cast<long long>(sizeof(T));
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        if (first + e >= 0 && (first + e) * static_cast<long long>(sizeof(T)) < end) to[e] = given.in[first + e];
    }
  }
};

}  // namespace hone
