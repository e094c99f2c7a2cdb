// Reduces every segment of an array to one value.
//
// Three ways to divide the work, from the least to the most robust:
//
//   DirectSegments   one warp or block per segment, straight from global memory: for long segments of similar lengths
//   StagedSegments   a few threads per segment, whose elements are staged in shared memory in full tiles: for short
//                    segments of similar lengths
//   MergePath        every block has an equal share of the merge path of segment ends and elements (merge_path.cuh):
//                    for any distribution of lengths, empty segments included
//
// In MergePath, a tile with ends is staged in shared memory and divided equally among the threads; a tile without one
// is streamed from global memory. The partials of a share's first and last segment are left as carries
// (segments.cuh), which the last block or a second kernel of one block combines.
//
// The order of combination depends only on the offsets, the grid and the array's alignment.
//
// Constraints: kBlockThreads is a power of two, at least a warp and at least two packs' elements; Op::Index holds the
// number of segments and elements together, plus one tile.
#pragma once

#include "combine.cuh"
#include "merge_path.cuh"

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

/// kGroupThreads threads per segment; the contiguous elements of a block's segments are staged in shared memory, tile
/// by tile.
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
struct MergePath {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using Tile = MergePathTile<Op, Arrays, kBlockThreads, kPacks>;
  static constexpr unsigned kTileItems = Tile::kTileItems;
  using Search = PathSearch<Arrays, kBlockThreads, kTileItems, Tile::kMaxEnds>;
  using Position = typename Search::Position;

  /// Reduces the share of a block, tile by tile; `carries` are the partials that it leaves for combine_carries().
  static __device__ void reduce_share(const Arrays& arrays, Carry<Op>& carries) {
    __shared__ typename Tile::Shared shared;
    Combine<Op, kBlockThreads, 1, Grid::none, true> combine;
    const Index origin = arrays.offset(0);
    const Index element_count = arrays.offset(arrays.count) - origin;
    const Index share = (arrays.count + element_count) / gridDim.x;
    const Index longer = (arrays.count + element_count) % gridDim.x;  // the first blocks have one more item
    const Index b = blockIdx.x;
    const Index item = b * share + (b < longer ? b : longer);
    const Search search{arrays, origin, item + share + (b < longer ? 1 : 0)};
    const Index least = item > element_count ? item - element_count : 0;
    const Index most = item < arrays.count ? item : arrays.count;

    Position at{item, search.template ends_before<4>(least, most, item)};
    const Index first_of_block = at.segment;
    auto carry = Op::identity();  // in thread 0
    Position next = search.tile_end(at, kBlockThreads);
    while (at.item < search.stop) {
      const Index element = origin + (at.item - at.segment);
      const Index begin = arrays.offset(at.segment);
      if (next.segment == at.segment) {  // no end in this tile: stream from global memory up to the next end
        const Index end = arrays.offset(at.segment + 1);
        const Index last = end - element < search.stop - at.item ? end : element + (search.stop - at.item);
        if (threadIdx.x != 0) carry = Op::identity();
        arrays.range(element, last, begin)
            .template accumulate_share<Op, kBlockThreads, kPacks>(carry, threadIdx.x, 0, 1);
        combine.to_first(carry);
        at.item += last - element;
        next = search.tile_end(at, kBlockThreads);
        continue;
      }

      const unsigned ends = static_cast<unsigned>(next.segment - at.segment);
      const unsigned elements = static_cast<unsigned>(next.item - at.item) - ends;
      const typename Tile::Contents contents{element, at.segment, begin, elements, ends};
      const In* const staged = Tile::Run::copy(shared.elements, arrays.in + element, elements);
#pragma unroll 4
      for (unsigned j = threadIdx.x; j < ends; j += kBlockThreads)
        shared.ends[j] = static_cast<unsigned short>(arrays.offset(at.segment + 1 + j) - element);
      if (threadIdx.x == 0) shared.ends[ends] = Tile::kNoEnd;
      const Position after_next = search.tile_end(next, 2 * ends + kWarpThreads);  // while the loads are in flight
      wait_for_copies();
      __syncthreads();
      carry = Tile::reduce_tile(shared, staged, contents, carry);
      __syncthreads();
      Tile::write_segments(arrays, shared, contents, first_of_block, carries);
      __syncthreads();
      at = next;
      next = after_next;
    }
    if (threadIdx.x == 0) {
      carries.segment = first_of_block;
      carries.tail = carry;
    }
  }

  /// kGrid is last_block, or publish for combine_shares().
  template <Grid kGrid>
  static __device__ void reduce(const SegmentsArguments& arguments) {
    const Arrays arrays{arguments};
    reduce_share(arrays, partials_in<Carry<Op>>(arguments.workspace)[blockIdx.x]);
    if constexpr (kGrid == Grid::last_block) {
      __syncthreads();
      if (is_last_block(arguments.workspace))
        combine_carries<Op, kBlockThreads>(arrays, arguments.workspace, gridDim.x);
    }
  }
};

/// The second kernel of MergePath, of one block.
template <class Op, class Arrays, unsigned kBlockThreads>
__device__ void combine_shares(const SegmentsArguments& arguments) {
  pdl_release_then_wait();
  combine_carries<Op, kBlockThreads>(Arrays{arguments}, arguments.workspace, arguments.blocks);
}

}  // namespace hone
