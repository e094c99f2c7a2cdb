// Reduces every segment of an array to one value.
//
// Three ways to divide the work, in order of what they withstand:
//
//   OneGroup   one warp or block per segment, straight from memory: for long segments of similar lengths
//   InTiles    a few threads per segment; the segments of a block are neighbours, so their elements go through shared
//              memory in whole tiles: for short segments of similar lengths
//   Merged     every block takes an equal share of all segment ends and elements together, wherever that begins and
//              ends: for lengths of any distribution, empty segments included
//
// Merged walks along the merge path of Green, Odeh and Birk (Merge path – a visually intuitive approach to parallel
// merging, 2014), as Merrill and Garland do for sparse matrices (Merge-based parallel sparse matrix-vector multiplication,
// 2016): item k of a call is an element, or the end of a segment, which comes right behind the segment's last element.
// The end of segment s is item offsets[s + 1] − offsets[0] + s, which increases strictly, so that a search finds where a
// share begins. A tile with ends goes to shared memory and is divided equally among the threads by the same rule; where
// no end is near, the block goes straight through memory. What a share has of its first and last segment is left in the
// workspace and joined afterwards, by the block that finishes last or by a second kernel of one block.
//
// The order of combination follows from the offsets, the grid and the array's alignment alone.
//
// Constraints: kBlockThreads is a power of two, at least a warp and at least two packs' elements; Op::Index holds the
// number of segments and elements together, plus one tile.
#pragma once

#include "block_reduce.cuh"
#include "grid.cuh"
#include "segment_carries.cuh"
#include "segments.cuh"

namespace hone {

/// Combines kLanes neighbouring lanes of a warp into the first of them.
template <class Op, unsigned kLanes>
__device__ typename Op::State combine_lanes(typename Op::State value) {
#pragma unroll
  for (unsigned offset = kLanes / 2; offset > 0; offset /= 2) value = Op::combine(value, shuffle_down(value, offset));
  return value;
}

template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct OneGroup {
  using Index = typename Op::Index;
  using State = typename Op::State;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const Arrays& arrays) {
    static_assert(kGroupThreads == kWarpThreads || kGroupThreads == kBlockThreads);
    constexpr unsigned kGroups = kBlockThreads / kGroupThreads;
    wait_for_earlier_kernels();
    const unsigned rank = threadIdx.x % kGroupThreads;
    const Index stride = static_cast<Index>(gridDim.x) * kGroups;
    Index segment = static_cast<Index>(blockIdx.x) * kGroups + threadIdx.x / kGroupThreads;
    if (segment >= arrays.count) return;

    Index begin = arrays.offset(segment);
    Index end = arrays.offset(segment + 1);
    while (true) {
      const Index next = segment + stride;
      const Index next_begin = next < arrays.count ? arrays.offset(next) : 0;  // under way while this one is reduced
      const Index next_end = next < arrays.count ? arrays.offset(next + 1) : 0;
      State state = stream<Op, kGroupThreads, kPacks>(arrays, rank, begin, end, begin, Op::identity());
      if constexpr (kGroupThreads == kBlockThreads) state = block_reduce<Op, kBlockThreads>(state);
      else state = warp_reduce<Op, kWarpThreads>(state);
      if (rank == 0) arrays.write(segment, end - begin, state);
      if (next >= arrays.count) return;

      if constexpr (kGroupThreads == kBlockThreads) __syncthreads();
      segment = next;
      begin = next_begin;
      end = next_end;
    }
  }
};

template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct InTiles {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Tile = ElementTile<In, kBlockThreads, kPacks>;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const Arrays& arrays) {
    constexpr unsigned kGroups = kBlockThreads / kGroupThreads;
    alignas(kPackBytes) __shared__ unsigned char shared[Tile::kBytes];
    wait_for_earlier_kernels();
    const unsigned rank = threadIdx.x % kGroupThreads;
    const unsigned group = threadIdx.x / kGroupThreads;
    const Index stride = static_cast<Index>(gridDim.x) * kGroups;
    for (Index first = static_cast<Index>(blockIdx.x) * kGroups; first < arrays.count; first += stride) {
      const Index left = arrays.count - first;
      const bool has_segment = group < left;
      const Index begin = has_segment ? arrays.offset(first + group) : 0;
      const Index end = has_segment ? arrays.offset(first + group + 1) : 0;
      const Index last_element = arrays.offset(first + (left < kGroups ? left : kGroups));

      State state = Op::identity();
      for (Index at = arrays.offset(first); at < last_element; at += Tile::kMostElements) {
        const Index rest = last_element - at;
        const unsigned count = rest < Tile::kMostElements ? static_cast<unsigned>(rest) : Tile::kMostElements;
        Tile tile;
        tile.load(arrays.in + at, count, arrays.in, arrays.in + arrays.elements);
        tile.store(arrays.in + at, count, shared);
        __syncthreads();
        const In* const elements = reinterpret_cast<const In*>(shared) + Tile::shift(arrays.in + at);
        const Index from = begin > at ? begin : at;
        const Index to = end < at + count ? end : at + count;
        State of_tile = Op::identity();
        for (Index i = from + rank; i < to; i += kGroupThreads)
          of_tile = Op::combine(of_tile, Op::of(elements[i - at], i - begin));
        state = Op::combine(state, of_tile);
        __syncthreads();
      }
      state = combine_lanes<Op, kGroupThreads>(state);
      if (has_segment && rank == 0) arrays.write(first + group, end - begin, state);
    }
  }
};

template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct Merged {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Tile = ElementTile<In, kBlockThreads, kPacks>;

  /// One less than a thread loads, and so an odd number: what the threads of a warp read at once from shared memory lies
  /// in different banks.
  static constexpr unsigned kItems = kPacks * kPackBytes / sizeof(In) - 1;
  static constexpr unsigned kTileItems = kBlockThreads * kItems;
  static_assert(kTileItems <= Tile::kMostElements && kTileItems < 0xffff, "ends are kept in 16 bits");

  /// Elements from below, ends from above: the more there are of the ones, the fewer of the others.
  static constexpr unsigned kEndBytes = 2;
  static constexpr unsigned kSharedBytes =
      sizeof(In) >= kEndBytes ? Tile::kBytes : (kTileItems * kEndBytes / kPackBytes + 3) * kPackBytes;

  struct Walk {
    const Arrays& arrays;
    Index origin;  ///< the first element of all segments

    /// How many ends come before `item`, if at least `low` do and at most `high`. Every thread of the block must call it.
    __device__ Index ends_before(Index low, Index high, Index item) const {
      while (low < high) {
        const Index stride = (high - low + kBlockThreads - 1) / kBlockThreads;
        const Index probe = low + (threadIdx.x + 1) * stride - 1;
        const bool is_before = probe < high && arrays.offset(probe + 1) - origin + probe < item;
        low += static_cast<Index>(__syncthreads_count(is_before)) * stride;
        if (low + stride - 1 < high) high = low + stride - 1;
      }
      return low;
    }

    /// The same for an item no more than a tile behind a place that has `segment` ends before it.
    __device__ Index ends_before_near(Index segment, Index item) const {
      const Index most = arrays.count - segment;
      return ends_before(segment, segment + (most < kTileItems ? most : kTileItems), item);
    }
  };

  /// A tile in shared memory, as its threads see it.
  struct Staged {
    const In* elements;
    const unsigned short* ends;  ///< the first element behind each segment, counted from the tile's first
    unsigned element_count, end_count;
    Index first_element, first_segment;  ///< of the tile
    Index begin;                         ///< of the segment that the tile begins in
  };

  /// Goes through this thread's items and writes the segments that begin and end there. Returns what is carried on.
  /// `carry` is thread 0's; `head` belongs to the first segment of the block, if it ends here.
  static __device__ State reduce_staged(const Arrays& arrays, const Staged& tile, State carry, Index first_of_block,
                                        Words<State>* head) {
    const unsigned all = tile.element_count + tile.end_count;
    const unsigned from = threadIdx.x * kItems < all ? threadIdx.x * kItems : all;
    const unsigned to = from + kItems < all ? from + kItems : all;
    unsigned first = from > tile.element_count ? from - tile.element_count : 0;
    for (unsigned high = from < tile.end_count ? from : tile.end_count; first < high;) {
      const unsigned middle = (first + high) / 2;
      if (tile.ends[middle] + middle < from) first = middle + 1;
      else high = middle;
    }

    unsigned segment = first;
    unsigned element = from - first;
    Index begin = first == 0 ? tile.begin : tile.first_element + tile.ends[first - 1];
    unsigned end = first < tile.end_count ? tile.ends[first] : kTileItems;
    State state = threadIdx.x == 0 ? carry : Op::identity();
    State of_first = Op::identity();
    Index of_first_elements = 0;
#pragma unroll 1
    for (unsigned item = from; item < to; ++item) {
      if (element < end) {
        state = Op::combine(state, Op::of(tile.elements[element], tile.first_element + element - begin));
        ++element;
        continue;
      }
      const Index elements = tile.first_element + end - begin;
      if (segment == first) {  // what others have of it comes before
        of_first = state;
        of_first_elements = elements;
      } else {
        arrays.write(tile.first_segment + segment, elements, state);
      }
      state = Op::identity();
      begin = tile.first_element + end;
      ++segment;
      end = segment < tile.end_count ? tile.ends[segment] : kTileItems;
    }

    const bool has_end = segment > first;
    State carried_on = Op::identity();
    const State before = carried_in<Op, kBlockThreads>(state, has_end, carried_on);
    if (has_end) {
      of_first = Op::combine(before, of_first);
      const Index whose = tile.first_segment + first;
      if (whose == first_of_block) *head = Words<State>::of(of_first);
      else arrays.write(whose, of_first_elements, of_first);
    }
    return carried_on;
  }

  static __device__ void reduce_share(const Arrays& arrays, void* workspace) {
    alignas(kPackBytes) __shared__ unsigned char shared[kSharedBytes];
    const Walk walk{arrays, arrays.offset(0)};
    const Index elements = arrays.offset(arrays.count) - walk.origin;
    const Index share = (arrays.count + elements) / gridDim.x;
    const Index longer = (arrays.count + elements) % gridDim.x;  // the first blocks take one more
    const Index b = blockIdx.x;
    Index item = b * share + (b < longer ? b : longer);
    const Index stop = item + share + (b < longer ? 1 : 0);

    Index segment = walk.ends_before(item > elements ? item - elements : 0, item < arrays.count ? item : arrays.count, item);
    Carry<Op>& left = carries_of<Op>(workspace)[b];
    const Index first_of_block = segment;
    State carry = Op::identity();  // of thread 0
    Index next = walk.ends_before_near(segment, tile_end(item, stop));
    while (item < stop) {
      const Index element = walk.origin + (item - segment);
      const Index begin = arrays.offset(segment);
      if (next == segment) {  // no end near
        const Index end = arrays.offset(segment + 1);
        const Index last = end - element < stop - item ? end : element + (stop - item);
        const State state = stream<Op, kBlockThreads, kPacks>(arrays, threadIdx.x, element, last, begin,
                                                              threadIdx.x == 0 ? carry : Op::identity());
        carry = block_reduce<Op, kBlockThreads>(state);
        item += last - element;
        next = walk.ends_before_near(segment, tile_end(item, stop));  // a barrier, too
        continue;
      }

      const Index after = tile_end(item, stop);
      const unsigned end_count = static_cast<unsigned>(next - segment);
      const unsigned element_count = static_cast<unsigned>(after - item) - end_count;
      auto* const ends = reinterpret_cast<unsigned short*>(shared + kSharedBytes) - end_count;
      Tile tile;
      tile.load(arrays.in + element, element_count, arrays.in, arrays.in + arrays.elements);
#pragma unroll 4
      for (unsigned j = threadIdx.x; j < end_count; j += kBlockThreads)
        ends[j] = static_cast<unsigned short>(arrays.offset(segment + 1 + j) - element);
      const Index after_next = walk.ends_before_near(next, tile_end(after, stop));  // while the loads are under way
      tile.store(arrays.in + element, element_count, shared);
      __syncthreads();
      const Staged staged{reinterpret_cast<const In*>(shared) + Tile::shift(arrays.in + element), ends, element_count,
                          end_count, element, segment, begin};
      carry = reduce_staged(arrays, staged, carry, first_of_block, &left.head);
      item = after;
      segment = next;
      next = after_next;
    }
    if (threadIdx.x == 0) {
      left.segment = Words<Index>::of(first_of_block);
      left.tail = Words<State>::of(carry);
    }
  }

  static __device__ void second_kernel_follows(const Arrays& arrays, void* workspace) {
    wait_for_earlier_kernels();
    reduce_share(arrays, workspace);
  }

  static __device__ void last_block_joins(const Arrays& arrays, void* workspace) {
    __shared__ bool is_last;
    wait_for_earlier_kernels();
    reduce_share(arrays, workspace);
    __syncthreads();
    if (threadIdx.x == 0) is_last = take_last_ticket(static_cast<unsigned*>(workspace), gridDim.x);
    __syncthreads();
    if (is_last) join_carries<Op, kBlockThreads>(arrays, workspace, gridDim.x);
  }

 private:
  static __device__ Index tile_end(Index item, Index stop) { return stop - item < kTileItems ? stop : item + kTileItems; }
};

/// The second kernel of Merged.
template <class Op, unsigned kBlockThreads, class Arrays>
__device__ void join_shares(const Arrays& arrays, void* workspace, unsigned blocks) {
  wait_for_earlier_kernels();
  join_carries<Op, kBlockThreads>(arrays, workspace, blocks);
}

}  // namespace hone
