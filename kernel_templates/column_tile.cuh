// Tiles of columns: how reduce_columns.cuh divides outer × reduced × inner among blocks and threads.
#pragma once

#include "axis_arguments.h"
#include "pack.cuh"

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

/// A shifted load: a pack that begins at any element, as the two aligned packs that contain it. At least a word.
template <class T, unsigned kElements>
struct PackAcross {
  using Aligned = Pack<T, kElements>;
  Aligned low, high;

  /// Loads both packs, even if `from` is aligned.
  static __device__ PackAcross load(const T* from) {
    const auto* const aligned =
        reinterpret_cast<const Aligned*>(from - elements_behind_alignment<sizeof(Aligned)>(from));
    return {aligned[0], aligned[1]};
  }

  /// Loads what after(elements) takes, for a constant number of elements from an aligned address to `from`.
  static __device__ PackAcross load(const T* from, unsigned elements) {
    const auto* const aligned = reinterpret_cast<const Aligned*>(from - elements);
    PackAcross across;
    across.low = aligned[0];
    const unsigned bytes = elements * sizeof(T);
    if (bytes > 8) load_start<16>(across.high, aligned + 1);
    else if (bytes > 4) load_start<8>(across.high, aligned + 1);
    else if (bytes > 0) load_start<4>(across.high, aligned + 1);
    return across;
  }

  static __device__ PackAcross filled(T value) { return {Aligned::filled(value), Aligned::filled(value)}; }

  /// The pack that begins `elements` after `low`, fewer than a pack has. Fastest if the shift is uniform in the warp.
  __device__ Aligned after(unsigned elements) const {
    constexpr unsigned kWords = sizeof(Aligned) / 4;
    const unsigned bytes = elements * static_cast<unsigned>(sizeof(T));
    auto [words] = Words<PackAcross>(*this);
#pragma unroll
    for (unsigned step = kWords / 2; step > 0; step /= 2) {
#pragma unroll
      for (unsigned w = 0; w + step < 2 * kWords; ++w) words[w] = bytes & 4 * step ? words[w + step] : words[w];
    }
    Words<Aligned> result;
    unrolled<kWords>([&](unsigned w) {
      result.words[w] = sizeof(T) >= 4 ? words[w] : __funnelshift_r(words[w], words[w + 1], 8 * (bytes % 4));
    });
    return result.value();
  }

 private:
  /// Loads the first kBytes bytes of a pack, or all of it.
  template <unsigned kBytes>
  static __device__ void load_start(Aligned& pack, const Aligned* from) {
    using Part = Pack<unsigned, (kBytes < sizeof(Aligned) ? kBytes : sizeof(Aligned)) / 4>;
    const Part part = *reinterpret_cast<const Part*>(from);
    memcpy(&pack, &part, sizeof(Part));
  }
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

  /// The most rows of a tile that is not full. With shifted loads some are full and not known to be.
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

/// The kUnroll rows that a thread loads at once, its tile: distance(u) is how far row u is behind the first. The rows of
/// the threads that share a column are interleaved, or with shifted loads their tiles. Those are of neighbouring rows,
/// of which row u is one that begins shift(u) elements behind an aligned address. If the pitch is even, no row begins at
/// some of the alignments: there are fewer rows.
template <class Tiling>
class TileRows {
 public:
  using Offset = typename Tiling::Offset;

  /// `first` is the first row that is loaded in packs.
  __device__ TileRows(const typename Tiling::In* first, const ColumnTile<Tiling>& tile)
      : sharing_(static_cast<Offset>(Tiling::kThreadsPerOutput) * tile.parts) {
    if constexpr (Tiling::kShiftedLoads) {
      start_ = elements_behind_alignment<sizeof(typename Tiling::ElementPack)>(first);
      const unsigned pitch = static_cast<unsigned>(tile.pitch) % kAlignments;
      levels_ = __ffs(static_cast<int>(pitch | kAlignments)) - 1;
      const unsigned odd = pitch >> levels_;
      inverse_ = odd * odd * odd;  // odd · inverse_ is 1 modulo 16
    }
  }

  /// From the first row of a thread's tile to that of its next one.
  __device__ Offset stride() const { return sharing_ * rows(); }
  /// From the first row of all to that of thread `row_lane`.
  __device__ Offset first_of(Offset row_lane) const {
    return Tiling::kShiftedLoads ? row_lane * rows() : row_lane;
  }

  __device__ Offset distance(unsigned u) const {
    if constexpr (!Tiling::kShiftedLoads) return u * sharing_;
    const unsigned alignments = kAlignments >> levels_;
    return u / kAlignments * alignments + ((behind_start(u) >> levels_) * inverse_ & (alignments - 1));
  }

  /// True if all rows of the tile that begins with row `first` are ahead of row `end`.
  __device__ bool are_there(Offset first, Offset end) const {
    return levels_ == 0 && first + (Tiling::kUnroll - 1) * (Tiling::kShiftedLoads ? 1 : sharing_) < end;
  }
  __device__ bool is_there(unsigned u, unsigned left) const {
    return (!Tiling::kShiftedLoads || (behind_start(u) & ((1u << levels_) - 1)) == 0) &&
           static_cast<unsigned>(distance(u)) < left;
  }

 private:
  static constexpr unsigned kAlignments = Tiling::kShiftedLoads ? Tiling::kPackElements : 1;

  Offset sharing_;        ///< threads that share a column, of all parts
  unsigned start_ = 0;    ///< the misalignment of the first row
  unsigned levels_ = 0;   ///< how often 2 divides the pitch: rows have kAlignments >> levels_ alignments
  unsigned inverse_ = 1;  ///< of what is left of it

  /// The rows of a tile.
  __device__ unsigned rows() const {
    return Tiling::kShiftedLoads ? Tiling::kUnroll / kAlignments * (kAlignments >> levels_) : Tiling::kUnroll;
  }
  __device__ unsigned behind_start(unsigned u) const { return (Tiling::shift(u) - start_) % kAlignments; }
};

}  // namespace hone
