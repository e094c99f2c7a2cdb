// The merge path of segment ends and elements, the search for positions on it, and a tile of it in shared memory.
//
// The merge path is that of Green, Odeh and Birk (Merge path – a visually intuitive approach to parallel merging,
// 2014), used as Merrill and Garland do for CSR matrices (Merge-based parallel sparse matrix-vector multiplication,
// 2016). Item k of a call is an element, or the end of a segment, which comes right behind the segment's last element.
// The end of segment s is item offsets[s + 1] − offsets[0] + s, which increases strictly, so a search finds any
// position.
#pragma once

#include "segments.cuh"
#include "staged_run.cuh"

namespace hone {

template <class Arrays, unsigned kBlockThreads, unsigned kTileItems, unsigned kMaxEnds>
struct PathSearch {
  using Index = typename Arrays::Index;

  /// A position on the merge path: in front of item `item`; `segment` ends come before it.
  struct Position {
    Index item, segment;
  };

  const Arrays& arrays;
  Index origin;  ///< index of the first element of all segments
  Index stop;    ///< the first item behind the block's share

  /// The number of ends before `item`, which is at least `low` and at most `high`: a search by the whole block, in
  /// which each thread probes kProbes ends at a time. Every thread of the block must call it.
  template <unsigned kProbes>
  __device__ Index ends_before(Index low, Index high, Index item) const {
    while (low < high) {
      const Index stride = (high - low + kProbes * kBlockThreads - 1) / (kProbes * kBlockThreads);
      bool is_before[kProbes];
      unrolled<kProbes>([&](unsigned p) {
        const Index probe = low + (p * kBlockThreads + threadIdx.x + 1) * stride - 1;
        is_before[p] = probe < high && arrays.offset(probe + 1) - origin + probe < item;
      });
      unrolled<kProbes>([&](unsigned p) { low += static_cast<Index>(__syncthreads_count(is_before[p])) * stride; });
      if (low + stride - 1 < high) high = low + stride - 1;
    }
    return low;
  }

  /// The position behind the tile that begins at `from`. Searches the next `guess` ends first, since loading offsets
  /// that are not needed costs as much as loading those that are. Every thread of the block must call it.
  __device__ Position tile_end(Position from, unsigned guess) const {
    const Index item = stop - from.item < kTileItems ? stop : from.item + kTileItems;
    const Index left = arrays.count - from.segment;
    const Index last = from.segment + (left < kMaxEnds ? left : kMaxEnds);
    const Index near = guess < last - from.segment ? from.segment + guess : last;
    Index segment = ends_before<1>(from.segment, near, item);
    if (segment == near) segment = ends_before<1>(near, last, item);
    return {segment - from.segment < kMaxEnds ? item : arrays.offset(segment) - origin + segment, segment};
  }
};

/// A tile: its items are divided equally among the threads of a block.
template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct MergePathTile {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Run = StagedRun<In, kBlockThreads, kPacks>;

  /// Items per thread: one less than it loads elements. So it is odd, and the threads of a warp read from shared memory
  /// without bank conflicts.
  static constexpr unsigned kItems = kPacks * kPackBytes / sizeof(In) - 1;
  static constexpr unsigned kTileItems = kBlockThreads * kItems;

  /// The most ends in a tile: a tile with more is cut short, since its States would need more room than its elements.
  static constexpr unsigned kMaxEnds = kTileItems / 4 < 4 * kBlockThreads ? kTileItems / 4 : 4 * kBlockThreads;

  static constexpr unsigned kNoEnd = 0xffff;
  static_assert(kTileItems <= Run::kMaxWithinPacks && kTileItems < kNoEnd, "ends are kept in 16 bits");
  static constexpr unsigned kUnrolledItems = kItems <= 15 ? kItems : 8;

  /// A tile in shared memory.
  struct Shared {
    typename Run::ElementPack elements[kBlockThreads * kPacks];
    unsigned short ends[kMaxEnds + 1];  ///< end of each segment, relative to the tile's first element; then kNoEnd
    Words<State> of_segments[kMaxEnds];
  };

  /// The elements and segment ends in a tile.
  struct Contents {
    Index first_element, first_segment;
    Index begin;  ///< where the first segment begins
    unsigned element_count, end_count;
  };

  /// Accumulates this thread's items and stores the States of the segments that end there. Returns the carry to the
  /// next tile; that and `carry`, the carry into this tile, are in thread 0.
  static __device__ State reduce_tile(Shared& shared, const In* elements, const Contents& tile, State carry) {
    const unsigned all = tile.element_count + tile.end_count;
    const unsigned from = threadIdx.x * kItems < all ? threadIdx.x * kItems : all;
    unsigned first = from > tile.element_count ? from - tile.element_count : 0;
    for (unsigned high = from < tile.end_count ? from : tile.end_count; first < high;) {
      const unsigned middle = (first + high) / 2;
      if (shared.ends[middle] + middle < from) first = middle + 1;
      else high = middle;
    }

    unsigned segment = first;
    unsigned element = from - first;
    unsigned end = shared.ends[segment];
    Index begin = first == 0 ? tile.begin : tile.first_element + shared.ends[first - 1];
    State state = threadIdx.x == 0 ? carry : Op::identity();
    if (__all_sync(kFullMask, element + kItems <= tile.element_count && element + kItems <= end)) {
#pragma unroll kUnrolledItems
      for (unsigned i = 0; i < kItems; ++i)
        state = Op::combine(state, Op::of(elements[element + i], tile.first_element + element + i - begin));
    } else {
      const unsigned count = all - from < kItems ? all - from : kItems;
#pragma unroll kUnrolledItems
      for (unsigned i = 0; i < kItems; ++i) {
        if (i >= count) break;
        // Behind the last element this reads an arbitrary value, which is not used.
        const State with = Op::combine(state, Op::of(elements[element], tile.first_element + element - begin));
        if (element < end) {
          state = with;
          ++element;
        } else {
          shared.of_segments[segment] = state;
          state = Op::identity();
          begin = tile.first_element + end;
          ++segment;
          end = shared.ends[segment];
        }
      }
    }

    const bool has_end = segment > first;
    State carried_on = Op::identity();
    const State before = carried_in<Op, kBlockThreads>(state, has_end, carried_on);
    if (has_end) shared.of_segments[first] = Op::combine(before, shared.of_segments[first]);
    return carried_on;
  }

  /// Writes the segments that end in the tile, but for the first of the block, which is left as a carry.
  static __device__ void write_segments(const Arrays& arrays, const Shared& shared, const Contents& tile,
                                        Index first_of_block, Carry<Op>& carries) {
    for (unsigned j = threadIdx.x; j < tile.end_count; j += kBlockThreads) {
      const Index segment = tile.first_segment + j;
      const Index begin = j == 0 ? tile.begin : tile.first_element + shared.ends[j - 1];
      if (segment == first_of_block) carries.head = shared.of_segments[j];
      else arrays.write(segment, tile.first_element + shared.ends[j] - begin, shared.of_segments[j]);
    }
  }
};

}  // namespace hone
