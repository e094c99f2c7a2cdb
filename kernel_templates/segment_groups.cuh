// Segments of similar lengths: a group of threads per segment.
#pragma once

#include "grid.cuh"
#include "segments.cuh"

namespace hone {

/// One warp or block per segment, which loads straight from global memory.
template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct DirectSegments {
  using Index = typename Op::Index;
  using State = typename Op::State;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const SegmentsArguments& arguments) {
    const Arrays arrays(arguments);
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
      const Index next_begin = next < arrays.count ? arrays.offset(next) : 0;  // prefetched
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

/// kGroupThreads threads per segment; the contiguous elements of a block's segments are staged in shared memory, tile
/// by tile.
template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct StagedSegments {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Tile = ElementTile<In, kBlockThreads, kPacks>;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const SegmentsArguments& arguments) {
    const Arrays arrays(arguments);
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
      for (Index at = arrays.offset(first); at < last_element; at += Tile::kMaxElements) {
        const Index rest = last_element - at;
        const unsigned count = rest < Tile::kMaxElements ? static_cast<unsigned>(rest) : Tile::kMaxElements;
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

}  // namespace hone
