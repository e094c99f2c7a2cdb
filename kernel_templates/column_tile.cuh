// Tiles of columns: how reduce_columns.cuh divides outer × reduced × inner among blocks and threads.
#pragma once

#include "axis_arguments.h"
#include "pack_across.cuh"

namespace hone {

/// The alignment of rows, and how threads load packs from them: aligned packs, even if rows are not.
enum class RowStarts {
  aligned,  ///< every row starts at a multiple of a pack
  /// A thread's rows are a multiple of kPackElements rows apart, so they all have the same alignment. The outermost
  /// threads of a row drop the columns of neighbouring tiles that they load; a tile is one pack narrower than them all.
  phase_matched,
  /// A thread loads rows of all alignments at once, in the order of their alignment (TileRows). Each pack is extracted
  /// from two aligned ones, by a shift that is a constant.
  shifted_loads,
};

/// The compile-time parameters of ColumnReduce, and what follows from them.
template <class Op_, unsigned kBlockThreads_, unsigned kThreadsPerOutput_, unsigned kPackElements_, unsigned kUnroll_,
          RowStarts kStarts, bool kFolds_>
struct ColumnTiling {
  using Op = Op_;
  using In = typename Op::In;
  using ElementPack = Pack<In, kPackElements_>;
  using Offset = long long;  ///< in elements, from the start of the array; also a number of rows

  static constexpr unsigned kBlockThreads = kBlockThreads_, kThreadsPerOutput = kThreadsPerOutput_;
  static constexpr unsigned kPackElements = kPackElements_, kUnroll = kUnroll_;
  static constexpr bool kFolds = kFolds_;
  static constexpr bool kPhaseMatched = kStarts == RowStarts::phase_matched && kPackElements > 1;
  static constexpr bool kShiftedLoads = kStarts == RowStarts::shifted_loads;
  static constexpr unsigned kLanes = kBlockThreads / kThreadsPerOutput;  ///< threads along a row
  static constexpr unsigned kTileColumns = (kPhaseMatched ? kLanes - 1 : kLanes) * kPackElements;
  static_assert(kLanes * kThreadsPerOutput == kBlockThreads && kLanes >= 2);
  static_assert(!kPhaseMatched || kThreadsPerOutput % kPackElements == 0,
                "a thread's packs begin at the same columns in all its rows");
  static_assert(!kShiftedLoads || (kPackElements > 1 && kUnroll % kPackElements == 0));

  /// The place of a column's State in a row of shared memory. One place is left out behind every 128 bytes, so that the
  /// threads of a warp, whose columns are packs apart, store their States without bank conflicts.
  static __device__ constexpr unsigned slot(unsigned column) { return column + column / kStatesOfBanks; }
  static constexpr unsigned kStatesOfBanks = sizeof(typename Op::State) <= 4 ? 32
                                             : sizeof(typename Op::State) <= 8 ? 16
                                             : sizeof(typename Op::State) <= 16 ? 8 : 4;
  static constexpr unsigned kSlots = kTileColumns + (kTileColumns - 1) / kStatesOfBanks;

  /// A pack as it is loaded.
  using Loaded = typename Select<kShiftedLoads, PackAcross<In, kPackElements>, ElementPack>::type;

  /// The most rows of a tile that TileRows::are_there() does not find full. If the pitch is even, it finds none that is
  /// shifted.
  static constexpr unsigned kMostLeft = kShiftedLoads ? kUnroll : kUnroll - 1;

  /// The misalignment of row `u` of TileRows, in elements, with shifted loads.
  static __device__ constexpr unsigned shift(unsigned u) { return u % kPackElements; }

  /// Loads the pack at `from`, in row `u` of TileRows with shifted loads.
  static __device__ Loaded load(const In* from, unsigned u = 0) {
    if constexpr (kShiftedLoads) return Loaded::load(from, shift(u));
    else return *reinterpret_cast<const ElementPack*>(from);
  }

  /// Calls act(column) for each column of the tile: a block-stride loop, or at most one column per thread.
  static __device__ void for_columns(unsigned width, const auto& act) {
    if constexpr (kTileColumns <= kBlockThreads) {
      if (threadIdx.x < width) act(threadIdx.x);
    } else {
      for (unsigned c = threadIdx.x; c < width; c += kBlockThreads) act(c);
    }
  }
};

/// The columns of a tile in one slice. If rows are folded, these are the columns of the long rows.
template <class Tiling>
struct ColumnTile {
  using Offset = typename Tiling::Offset;

  Offset first;  ///< of the first column in row 0
  Offset end;    ///< elements from here on do not exist, or belong to the next slice
  Offset pitch;
  Offset rows;
  unsigned cut_levels;  ///< rows are every 2^cut_levels-th of the slice
  Offset row_of_packs, last_of_packs;  ///< the rows [row_of_packs, last_of_packs) are loaded in packs
  unsigned width;                      ///< in columns
  unsigned folds, inner;
  unsigned part, parts;

  __device__ ColumnTile(const ColumnsArguments& all, unsigned long long slice, unsigned long long column,
                        unsigned part_, unsigned parts_, unsigned first_row = 0, unsigned cut_levels_ = 0)
      : rows((static_cast<Offset>(all.rows) - first_row + (1 << cut_levels_) - 1) >> cut_levels_),
        cut_levels(cut_levels_),
        folds(Tiling::kFolds ? all.folds : 1),
        inner(static_cast<unsigned>(all.inner)),
        part(part_),
        parts(parts_) {
    constexpr unsigned kPackElements = Tiling::kPackElements;
    const unsigned long long left = all.inner - column;
    // The next slice is no part of an incomplete last row of folds. Without folds a pack may reach into the next row.
    const unsigned long long slices = Tiling::kFolds ? slice + 1 : all.outer;
    first = static_cast<Offset>(slice * all.slice_pitch + first_row * all.pitch + column);
    end = static_cast<Offset>(slices * all.slice_pitch - (all.pitch - all.inner));
    pitch = static_cast<Offset>(all.pitch * folds) << cut_levels;
    width = Tiling::kFolds ? inner * folds : at_most(left, all.tile_columns);

    // How far the packs of a row may reach beyond the tile. (A shifted load reads two packs and may need only one.)
    const Offset before = Tiling::kPhaseMatched || Tiling::kShiftedLoads ? kPackElements - 1 : 0;
    const Offset rest = (kPackElements - width % kPackElements) % kPackElements;
    const Offset behind = Tiling::kPhaseMatched ? kPackElements - 1
                          : Tiling::kShiftedLoads ? kPackElements + rest
                                                  : rest;
    const Offset room = end - first - width - behind;
    row_of_packs = first < before ? (before - first + pitch - 1) / pitch : 0;
    last_of_packs = room >= (rows - 1) * pitch ? rows : room < 0 ? 0 : room / pitch + 1;
  }

  __device__ bool has_packs_only() const { return row_of_packs == 0 && last_of_packs == rows; }
};

}  // namespace hone
