// A tile of the merge path in shared memory: its items are divided equally among the threads of a block.
#pragma once

#include "segment_carries.cuh"
#include "segments.cuh"
#include "staged_run.cuh"

namespace hone {

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
          shared.of_segments[segment] = Words<State>::of(state);
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
    if (has_end)
      shared.of_segments[first] = Words<State>::of(Op::combine(before, shared.of_segments[first].value()));
    return carried_on;
  }

  /// Writes the segments that end in the tile, but for the first of the block, which is left as a carry.
  static __device__ void write_segments(const Arrays& arrays, const Shared& shared, const Contents& tile,
                                        Index first_of_block, Carry<Op>& carries) {
    for (unsigned j = threadIdx.x; j < tile.end_count; j += kBlockThreads) {
      const Index segment = tile.first_segment + j;
      const Index begin = j == 0 ? tile.begin : tile.first_element + shared.ends[j - 1];
      if (segment == first_of_block) carries.head = shared.of_segments[j];
      else arrays.write(segment, tile.first_element + shared.ends[j] - begin, shared.of_segments[j].value());
    }
  }
};

}  // namespace hone
