// The merge path of segment ends and elements, and its division into equal shares.
//
// The merge path is that of Green, Odeh and Birk (Merge path – a visually intuitive approach to parallel merging,
// 2014), used as Merrill and Garland do for CSR matrices (Merge-based parallel sparse matrix-vector multiplication,
// 2016). Item k of a call is an element, or the end of a segment, which comes right behind the segment's last element.
// The end of segment s is item offsets[s + 1] − offsets[0] + s, which increases strictly: a search finds any position.
#pragma once

#include "segments.cuh"

namespace hone {

/// The elements of a share, and the segments that end in it.
template <class Index>
struct PathShare {
  Index first_element, behind_elements;
  Index first_segment, behind_segments;
};

template <class Arrays>
struct MergePath {
  using Index = typename Arrays::Index;

  const Arrays& arrays;
  Index origin = arrays.offset(0);
  Index elements = arrays.offset(arrays.count) - origin;

  /// Share `number` of so many. The lanes of a warp call it together.
  __device__ PathShare<Index> share(Index number, Index shares) const {
    const Index size = (arrays.count + elements) / shares;
    const Index longer = (arrays.count + elements) % shares;  // the first shares have one more item
    const Index first = number * size + (number < longer ? number : longer);
    const Index last = first + size + (number < longer ? 1 : 0);
    const Index ends = ends_before(threadIdx.x % kWarpThreads < kSearchLanes ? first : last);
    const Index before = uniform(shuffle_from(ends, 0)), up_to_last = uniform(shuffle_from(ends, kSearchLanes));
    return {origin + (first - before), origin + (last - up_to_last), before, up_to_last};
  }

 private:
  static constexpr unsigned kSearchLanes = kWarpThreads / 2;
  static constexpr unsigned kProbes = 2;  ///< of a lane, under way together

  /// The number of ends before `item`. Each half of a warp has an item of its own.
  __device__ Index ends_before(Index item) const {
    const unsigned lane = threadIdx.x % kSearchLanes;
    const unsigned half = threadIdx.x % kWarpThreads - lane;
    Index low = item > elements ? item - elements : 0;
    Index high = item < arrays.count ? item : arrays.count;
    while (__any_sync(kFullMask, low < high)) {
      const Index stride = (high - low + kProbes * kSearchLanes - 1) / (kProbes * kSearchLanes);
      bool is_before[kProbes];
      unrolled<kProbes>([&](unsigned p) {
        const Index probe = low + (p * kSearchLanes + lane + 1) * stride - 1;
        is_before[p] = stride > 0 && probe < high && arrays.offset(probe + 1) - origin + probe < item;
      });
      unrolled<kProbes>([&](unsigned p) {
        const unsigned before = __ballot_sync(kFullMask, is_before[p]) >> half & (kFullMask >> kSearchLanes);
        low += static_cast<Index>(__popc(before)) * stride;
      });
      if (stride > 0 && low + stride - 1 < high) high = low + stride - 1;
    }
    return low;
  }
};

}  // namespace hone
