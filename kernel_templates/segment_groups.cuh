// Segments of similar lengths: a group of threads per segment.
#pragma once

#include "combine.cuh"
#include "segments.cuh"
#include "staged_run.cuh"

namespace hone {

/// One warp or block per segment, which loads straight from global memory.
template <class Op, class Arrays, unsigned kBlockThreads, unsigned kPacks>
struct DirectSegments {
  using Index = typename Op::Index;
  using State = typename Op::State;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const SegmentsArguments& arguments) {
    static_assert(kGroupThreads == kWarpThreads || kGroupThreads == kBlockThreads);
    constexpr unsigned kGroups = kBlockThreads / kGroupThreads;
    const Arrays arrays(arguments);
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
      State state = Op::identity();
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
    const Arrays arrays(arguments);
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
        const Index rest = last_element - at;
        const unsigned count = rest < kTileElements ? static_cast<unsigned>(rest) : kTileElements;
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

}  // namespace hone
