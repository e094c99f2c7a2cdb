// SegmentWindow: neighbouring offsets of segments, spread over the lanes of a warp, and the ends they mark in a tile.
#pragma once

#include "merge_path.cuh"

namespace hone {

/// The number of the highest bit that is set; all ones if there is none.
__device__ inline unsigned highest_bit(unsigned mask) {
  return kWarpThreads - 1 - static_cast<unsigned>(__clz(static_cast<int>(mask)));
}

/// Elements [from, behind) of a tile. That at place 0 has index `first`, which wraps if it would be below 0.
template <class Index>
struct TilePart {
  Index first;
  unsigned from, behind;

  /// The place of an element, or the nearest within the part.
  __device__ unsigned place(Index element) const {
    const Index least = first + from, most = first + behind;
    const Index nearest = element < least ? least : element;
    return static_cast<unsigned>((nearest < most ? nearest : most) - first);
  }
};

/// The places in a tile of the elements of a segment.
template <unsigned kLaneElements>
struct SegmentPlaces {
  unsigned from, behind;

  __device__ bool is_empty() const { return from >= behind; }
  /// The lane of the last element, and the element's number and bit there.
  __device__ unsigned lane() const { return (behind - 1) / kLaneElements; }
  __device__ unsigned element() const { return (behind - 1) % kLaneElements; }
  __device__ unsigned bit() const { return 1u << element(); }
};

/// Offsets first … first + kOffsets − 1; number r · 32 + l is in lane l. Number 0 is where segment `first` begins, and
/// the others are the ends of that segment and the next ones.
template <class Arrays, unsigned kLaneElements>
struct SegmentWindow {
  using Index = typename Arrays::Index;
  using Segment = SegmentPlaces<kLaneElements>;
  static constexpr unsigned kRounds = kLaneElements <= 16 ? 1 : kLaneElements / 16;
  static constexpr unsigned kOffsets = kWarpThreads * kRounds;

  Index first;
  Index offsets[kRounds];

  /// Offsets after that of segment `behind` are beyond any element.
  __device__ SegmentWindow(const Arrays& arrays, Index first_, Index behind) : first(first_) {
    unrolled<kRounds>([&](unsigned r) {
      const unsigned number = number_of(r);
      offsets[r] = number <= behind - first ? arrays.offset(first + number) : ~Index(0);
    });
  }

  static __device__ unsigned number_of(unsigned r) { return r * kWarpThreads + threadIdx.x % kWarpThreads; }

  /// Where segment `first` begins.
  __device__ Index begin() const { return shuffle_from(offsets[0], 0); }

  /// Where the segment of `element` begins, the first that was not reduced yet: only `first` has elements before it.
  __device__ Index begin_at(Index element) const {
    const Index begin_of_first = begin(), behind_first = shuffle_from(offsets[0], 1);
    return behind_first <= element ? element : begin_of_first;
  }

  /// The number of segments that end at an element's beginning or before.
  __device__ unsigned ends_up_to(Index element) const {
    unsigned count = 0;
    unrolled<kRounds>([&](unsigned r) {
      count += static_cast<unsigned>(__popc(__ballot_sync(kFullMask, offsets[r] <= element)));
    });
    return count - 1;
  }

  /// The segments that end at this lane's offsets, of the first rounds; that of number 0 lies in front of the part.
  __device__ void segments(Segment (&all)[kRounds], unsigned rounds, const TilePart<Index>& part) const {
    unsigned last = 0;  // of the round before
#pragma unroll
    for (unsigned r = 0; r < kRounds; ++r) {
      if (r >= rounds) break;
      const unsigned place = part.place(offsets[r]), before = shuffle_up(place, 1);
      all[r] = {threadIdx.x % kWarpThreads == 0 ? last : before, place};
      if (r + 1 < kRounds) last = shuffle_from(place, kWarpThreads - 1);
    }
  }

  /// Where the last offset lies.
  __device__ unsigned last_place(const TilePart<Index>& part) const {
    return part.place(shuffle_from(offsets[kRounds - 1], kWarpThreads - 1));
  }
};

}  // namespace hone
