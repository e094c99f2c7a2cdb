// TileRows: which rows of a tile of columns a thread loads at once.
#pragma once

#include "column_tile.cuh"

namespace hone {

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
