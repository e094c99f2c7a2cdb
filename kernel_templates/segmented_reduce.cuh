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
// merging, 2014), as Merrill and Garland do for sparse matrices (Merge-based parallel sparse matrix-vector
// multiplication, 2016): item k of a call is an element, or the end of a segment, which comes right behind the
// segment's last element. The end of segment s is item offsets[s + 1] − offsets[0] + s, which increases strictly, so
// that a search finds where a share begins. A tile with ends goes to shared memory and is divided equally among the
// threads by the same rule; where no end is near, the block goes straight through memory. What a share has of its first
// and last segment is left in the workspace and joined afterwards, by the block that finishes last or by a second
// kernel of one block.
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

template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct OneGroup {
  using Index = typename Op::Index;
  using State = typename Op::State;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const Arrays& arrays) {
    static_assert(kGroupThreads == kWarpThreads || kGroupThreads == kBlockThreads);
    constexpr unsigned kGroups = kBlockThreads / kGroupThreads;
    pdl_release_then_wait();
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
    pdl_release_then_wait();
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
      state = lanes_reduce<Op, kGroupThreads>(state);
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

  /// One less than a thread loads, and so an odd number: what the threads of a warp read at once from shared memory
  /// lies in different banks.
  static constexpr unsigned kItems = kPacks * kPackBytes / sizeof(In) - 1;
  static constexpr unsigned kTileItems = kBlockThreads * kItems;

  /// A tile with more ends is cut short: its states would take more room than its elements.
  static constexpr unsigned kMostEnds = kTileItems / 4 < 4 * kBlockThreads ? kTileItems / 4 : 4 * kBlockThreads;

  static constexpr unsigned kNoEnd = 0xffff;
  static_assert(kTileItems <= Tile::kMostElements && kTileItems < kNoEnd, "ends are kept in 16 bits");

  /// A place between two items: so many ends come before it.
  struct Place {
    Index item, segment;
  };

  struct Walk {
    const Arrays& arrays;
    Index origin;  ///< the first element of all segments
    Index stop;    ///< the item behind the block's share

    /// How many ends come before `item`, if at least `low` do and at most `high`. Every thread of the block must call
    /// it, and looks at kProbes ends at a time.
    template <unsigned kProbes>
    __device__ Index ends_before(Index low, Index high, Index item) const {
      while (low < high) {
        const Index stride = (high - low + kProbes * kBlockThreads - 1) / (kProbes * kBlockThreads);
        bool is_before[kProbes];
#pragma unroll
        for (unsigned p = 0; p < kProbes; ++p) {
          const Index probe = low + (p * kBlockThreads + threadIdx.x + 1) * stride - 1;
          is_before[p] = probe < high && arrays.offset(probe + 1) - origin + probe < item;
        }
#pragma unroll
        for (unsigned p = 0; p < kProbes; ++p) low += static_cast<Index>(__syncthreads_count(is_before[p])) * stride;
        if (low + stride - 1 < high) high = low + stride - 1;
      }
      return low;
    }

    /// The end of the tile that begins here. Every thread of the block must call it. Looks among the next `guess` ends
    /// first: offsets that are not needed now cost as much as those that are.
    __device__ Place behind_tile(Place from, unsigned guess) const {
      const Index item = stop - from.item < kTileItems ? stop : from.item + kTileItems;
      const Index left = arrays.count - from.segment;
      const Index last = from.segment + (left < kMostEnds ? left : kMostEnds);
      const Index near = guess < last - from.segment ? from.segment + guess : last;
      Index segment = ends_before<1>(from.segment, near, item);
      if (segment == near) segment = ends_before<1>(near, last, item);
      return {segment - from.segment < kMostEnds ? item : arrays.offset(segment) - origin + segment, segment};
    }
  };

  /// A tile in shared memory.
  struct Shared {
    alignas(kPackBytes) unsigned char elements[Tile::kBytes];
    unsigned short ends[kMostEnds + 1];  ///< the element behind each segment, counted from the tile's first; then
                                         ///< kNoEnd
    Words<State> of_segments[kMostEnds];
  };

  /// What a tile has of which segments.
  struct Contents {
    Index first_element, first_segment;
    Index begin;  ///< of the first segment
    unsigned element_count, end_count;
  };

  /// Goes through this thread's items and leaves the states of the segments that end there. Returns what is carried on;
  /// that and `carry` are thread 0's.
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
        // Behind the last element lies what may be anything, and is not used.
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

  /// Goes from place to place. `left` is what the block leaves for the others.
  static __device__ void reduce_share(const Arrays& arrays, Carry<Op>& left) {
    __shared__ Shared shared;
    const Index origin = arrays.offset(0);
    const Index element_count = arrays.offset(arrays.count) - origin;
    const Index share = (arrays.count + element_count) / gridDim.x;
    const Index longer = (arrays.count + element_count) % gridDim.x;  // the first blocks take one more
    const Index b = blockIdx.x;
    const Index item = b * share + (b < longer ? b : longer);
    const Walk walk{arrays, origin, item + share + (b < longer ? 1 : 0)};
    const Index least = item > element_count ? item - element_count : 0;
    const Index most = item < arrays.count ? item : arrays.count;

    Place at{item, walk.template ends_before<4>(least, most, item)};
    const Index first_of_block = at.segment;
    State carry = Op::identity();  // of thread 0
    Place next = walk.behind_tile(at, kBlockThreads);
    while (at.item < walk.stop) {
      const Index element = origin + (at.item - at.segment);
      const Index begin = arrays.offset(at.segment);
      if (next.segment == at.segment) {  // no end near: through memory up to the next
        const Index end = arrays.offset(at.segment + 1);
        const Index last = end - element < walk.stop - at.item ? end : element + (walk.stop - at.item);
        const State state = stream<Op, kBlockThreads, kPacks>(arrays, threadIdx.x, element, last, begin,
                                                              threadIdx.x == 0 ? carry : Op::identity());
        carry = block_reduce<Op, kBlockThreads>(state);
        at.item += last - element;
        next = walk.behind_tile(at, kBlockThreads);  // a barrier, too
        continue;
      }

      const unsigned ends = static_cast<unsigned>(next.segment - at.segment);
      const unsigned elements = static_cast<unsigned>(next.item - at.item) - ends;
      const Contents contents{element, at.segment, begin, elements, ends};
      Tile tile;
      tile.load(arrays.in + element, elements, arrays.in, arrays.in + arrays.elements);
#pragma unroll 4
      for (unsigned j = threadIdx.x; j < ends; j += kBlockThreads)
        shared.ends[j] = static_cast<unsigned short>(arrays.offset(at.segment + 1 + j) - element);
      if (threadIdx.x == 0) shared.ends[ends] = kNoEnd;
      const Place after_next = walk.behind_tile(next, 2 * ends + kWarpThreads);  // while the loads are under way
      tile.store(arrays.in + element, elements, shared.elements);
      __syncthreads();
      carry = reduce_tile(shared, reinterpret_cast<const In*>(shared.elements) + Tile::shift(arrays.in + element),
                          contents, carry);
      __syncthreads();
      write_segments(arrays, shared, contents, first_of_block, left);
      __syncthreads();
      at = next;
      next = after_next;
    }
    if (threadIdx.x == 0) {
      left.segment = Words<Index>::of(first_of_block);
      left.tail = Words<State>::of(carry);
    }
  }

  static __device__ void second_kernel_follows(const Arrays& arrays, void* workspace) {
    pdl_release_then_wait();
    reduce_share(arrays, partials_in<Carry<Op>>(workspace)[blockIdx.x]);
  }

  static __device__ void last_block_joins(const Arrays& arrays, void* workspace) {
    __shared__ bool is_last;
    pdl_release_then_wait();
    reduce_share(arrays, partials_in<Carry<Op>>(workspace)[blockIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) is_last = take_last_ticket(static_cast<unsigned*>(workspace), gridDim.x);
    __syncthreads();
    if (is_last) join_carries<Op, kBlockThreads>(arrays, workspace, gridDim.x);
  }

 private:
  static constexpr unsigned kUnrolledItems = kItems <= 15 ? kItems : 8;

  static __device__ void write_segments(const Arrays& arrays, const Shared& shared, const Contents& tile,
                                        Index first_of_block, Carry<Op>& left) {
    for (unsigned j = threadIdx.x; j < tile.end_count; j += kBlockThreads) {
      const Index segment = tile.first_segment + j;
      const Index begin = j == 0 ? tile.begin : tile.first_element + shared.ends[j - 1];
      if (segment == first_of_block) left.head = shared.of_segments[j];
      else arrays.write(segment, tile.first_element + shared.ends[j] - begin, shared.of_segments[j].value());
    }
  }
};

/// The second kernel of Merged.
template <class Op, unsigned kBlockThreads, class Arrays>
__device__ void join_shares(const Arrays& arrays, void* workspace, unsigned blocks) {
  pdl_release_then_wait();
  join_carries<Op, kBlockThreads>(arrays, workspace, blocks);
}

}  // namespace hone
