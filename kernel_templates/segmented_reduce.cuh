// Reduces every segment of an array to one value.
//
// Three ways to divide the work, from the least to the most robust:
//
//   DirectSegments   one warp or block per segment, straight from global memory: for long segments of similar lengths
//   StagedSegments   a few threads per segment, whose elements are staged in shared memory in full tiles: for short
//                    segments of similar lengths
//   MergedSegments   every warp has an equal share of the merge path of segment ends and elements (merge_path.cuh),
//                    which it reduces in tiles (segment_tiles.cuh): for any distribution of lengths, empty segments
//                    included
//
// In MergedSegments, the partials of a share's first and last segment are left as carries (segments.cuh). A block's
// first warp combines those of its warps; the last block, or a second kernel of one block, those of the blocks. The
// order of combination depends only on the offsets, the grid and the array's alignment.
//
// Constraints: kBlockThreads is a power of two, at least a warp and at least two packs' elements; Op::Index holds the
// number of segments and elements together, plus one tile.
#pragma once

#include "combine.cuh"
#include "segment_tiles.cuh"
#include "staged_run.cuh"

namespace hone {

template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct DirectSegments {
  using Index = typename Op::Index;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const SegmentsArguments& arguments) {
    static_assert(kGroupThreads == kWarpThreads || kGroupThreads == kBlockThreads);
    constexpr unsigned kGroups = kBlockThreads / kGroupThreads;
    const Arrays arrays{arguments};
    Combine<Op, kGroupThreads, 1, Grid::none, true> combine;
    const Index stride = static_cast<Index>(gridDim.x) * kGroups;
    Index segment = static_cast<Index>(blockIdx.x) * kGroups + threadIdx.x / kGroupThreads;
    if (segment >= arrays.count) return;

    Index begin = arrays.offset(segment);
    Index end = arrays.offset(segment + 1);
    while (true) {
      const Index next = segment + stride;
      const Index next_begin = next < arrays.count ? arrays.offset(next) : 0;  // prefetched
      const Index next_end = next < arrays.count ? arrays.offset(next + 1) : 0;
      auto state = Op::identity();
      arrays.range(begin, end, begin).template accumulate_share<Op, kGroupThreads, kPacks>(state, combine.rank(), 0, 1);
      if (combine.to_first(state)) arrays.write(segment, end - begin, state);
      if (next >= arrays.count) return;

      segment = next;
      begin = next_begin;
      end = next_end;
    }
  }
};

/// kGroupThreads threads per segment; the elements of a block's segments are staged in shared memory, tile by tile.
template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct StagedSegments {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Run = StagedRun<In, kBlockThreads, kPacks>;
  static constexpr unsigned kTileElements = Run::kMaxWithinPacks;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const SegmentsArguments& arguments) {
    constexpr unsigned kGroups = kBlockThreads / kGroupThreads;
    __shared__ typename Run::ElementPack shared[kBlockThreads * kPacks];
    const Arrays arrays{arguments};
    Combine<Op, kGroupThreads> combine;
    const unsigned group = threadIdx.x / kGroupThreads;
    const Index stride = static_cast<Index>(gridDim.x) * kGroups;
    for (Index first = static_cast<Index>(blockIdx.x) * kGroups; first < arrays.count; first += stride) {
      const Index left = arrays.count - first;
      const bool has_segment = group < left;
      const Index begin = has_segment ? arrays.offset(first + group) : 0;
      const Index end = has_segment ? arrays.offset(first + group + 1) : 0;
      const Index last_element = arrays.offset(first + (left < kGroups ? left : kGroups));

      State state = Op::identity();
      for (Index at = arrays.offset(first); at < last_element; at += kTileElements) {
        const unsigned count = at_most(last_element - at, kTileElements);
        const In* const elements = Run::copy(shared, arrays.in + at, count);
        wait_for_copies();
        __syncthreads();
        const Index from = begin > at ? begin : at;
        const Index to = end < at + count ? end : at + count;
        State of_tile = Op::identity();
        for (Index i = from + combine.rank(); i < to; i += kGroupThreads)
          of_tile = Op::combine(of_tile, Op::of(elements[i - at], i - begin));
        state = Op::combine(state, of_tile);
        __syncthreads();
      }
      if (combine.to_first(state) && has_segment) arrays.write(first + group, end - begin, state);
    }
  }
};

template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct MergedSegments {
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Tiles = SegmentTiles<Op, Arrays, kPacks>;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static constexpr unsigned kTileElements = kWarps * Tiles::kTileElements;
  static constexpr unsigned kTileBytes = kWarps * sizeof(typename Tiles::Shared);

  /// A warp leaves this to its block.
  struct OfWarp {
    Carry<Op> carry;
    unsigned has_end;
  };

  /// Called by the first warp: completes the segments that several warps of the block share, but for the block's first.
  static __device__ void join_warps(const Arrays& arrays, const OfWarp* warps, Carry<Op>& of_block) {
    const unsigned lane = threadIdx.x;
    const bool has_end = lane < kWarps && warps[lane % kWarps].has_end != 0;
    const unsigned with_end = __ballot_sync(kFullMask, has_end);
    State tail = lane < kWarps ? warps[lane % kWarps].carry.tail.value() : Op::identity();
    tail = tails_up_to_here<Op>(tail, with_end);
    const State before = of_lane_before<Op>(tail);
    if (has_end) {
      const Index segment = warps[lane].carry.segment;
      const State whole = Op::combine(before, warps[lane].carry.head);
      if ((with_end & ((1u << lane) - 1)) == 0) of_block.head = whole;
      else arrays.write(segment, arrays.offset(segment + 1) - arrays.offset(segment), whole);
    }
    if (lane == 0) of_block.segment = warps[0].carry.segment;
    if (lane == kWarps - 1) of_block.tail = tail;
  }

  /// kGrid is last_block, or publish for combine_shares().
  template <Grid kGrid>
  static __device__ void reduce(const SegmentsArguments& arguments) {
    __shared__ typename Tiles::Shared shared[kWarps];
    __shared__ OfWarp warps[kWarps];
    pdl_release_then_wait();
    const Arrays arrays{arguments};
    const unsigned warp = uniform(threadIdx.x / kWarpThreads);
    const auto share = MergePath<Arrays>{arrays}.share(static_cast<Index>(blockIdx.x) * kWarps + warp,
                                                       static_cast<Index>(gridDim.x) * kWarps);
    Tiles(arrays, share, shared[warp]).reduce(warps[warp].carry);
    warps[warp].has_end = share.first_segment < share.behind_segments;
    __syncthreads();
    if (warp == 0) join_warps(arrays, warps, partials_in<Carry<Op>>(arguments.workspace)[blockIdx.x]);
    if constexpr (kGrid == Grid::last_block) {
      __syncthreads();
      if (is_last_block(arguments.workspace))
        combine_carries<Op, kBlockThreads>(arrays, arguments.workspace, gridDim.x);
    }
  }
};

/// The second kernel of MergedSegments, of one block.
template <class Op, class Arrays, unsigned kBlockThreads>
__device__ void combine_shares(const SegmentsArguments& arguments) {
  pdl_release_then_wait();
  combine_carries<Op, kBlockThreads>(Arrays{arguments}, arguments.workspace, arguments.blocks);
}

}  // namespace hone
