// The merge path of segment ends and elements, and its division into equal shares.
//
// The merge path is that of Green, Odeh and Birk (Merge path – a visually intuitive approach to parallel merging,
// 2014), used as Merrill and Garland do for CSR matrices (Merge-based parallel sparse matrix-vector multiplication,
// 2016). Item k of a call is an element, or the end of a segment, which comes right behind the segment's last element.
// The end of segment s is item offsets[s + 1] − offsets[0] + s, which increases strictly: a search finds any position.
#pragma once

#include "segments.cuh"

namespace hone {

/// The elements of a share, and the segments that end in it. There are elements of the array before and behind it.
template <class Index>
struct PathShare {
  Index first_element, behind_elements;
  Index first_segment, behind_segments;
  Index before, behind;
};

template <class Arrays>
struct MergePath {
  using Index = typename Arrays::Index;

  const Arrays& arrays;
  Index origin = arrays.offset(0);
  Index elements = arrays.offset(arrays.count) - origin;

  /// Share `number` of so many. The lanes of a warp call it together.
  __device__ PathShare<Index> share(Index number, Index shares) const {
    const Probes of_all(arrays, 0, arrays.count);  // loads together with offset(0) and offset(count)
    const Index size = (arrays.count + elements) / shares;
    const Index longer = (arrays.count + elements) % shares;  // the first shares have one more item
    const Index first = number * size + (number < longer ? number : longer);
    const Index last = first + size + (number < longer ? 1 : 0);
    const Index ends = ends_before(threadIdx.x % kWarpThreads < kSearchLanes ? first : last, of_all);
    const Index before = uniform(shuffle_from(ends, 0)), up_to_last = uniform(shuffle_from(ends, kSearchLanes));
    const Index first_element = first - before, behind_elements = last - up_to_last;
    return {origin + first_element, origin + behind_elements, before, up_to_last, first_element,
            elements - behind_elements};
  }

 private:
  static constexpr unsigned kSearchLanes = kWarpThreads / 2;
  static constexpr unsigned kProbes = 8;  ///< of a lane, under way together

  /// The offsets behind every stride-th of the segments [low, high).
  struct Probes {
    Index low, high, stride;
    Index offsets[kProbes];

    __device__ Probes(const Arrays& arrays, Index low_, Index high_)
        : low(low_), high(high_), stride((high - low + kProbes * kSearchLanes - 1) / (kProbes * kSearchLanes)) {
      unrolled<kProbes>([&](unsigned p) { offsets[p] = is_there(p) ? arrays.offset(segment(p) + 1) : 0; });
    }

    __device__ Index segment(unsigned p) const {
      return low + (p * kSearchLanes + threadIdx.x % kSearchLanes + 1) * stride - 1;
    }
    __device__ bool is_there(unsigned p) const { return stride > 0 && segment(p) < high; }
  };

  /// The number of ends before `item`. Each half of a warp has an item of its own.
  __device__ Index ends_before(Index item, Probes probes) const {
    const unsigned half = threadIdx.x % kWarpThreads / kSearchLanes * kSearchLanes;
    while (true) {
      Index low = probes.low, high = probes.high;
      unrolled<kProbes>([&](unsigned p) {
        const bool is_before = probes.is_there(p) && probes.offsets[p] - origin + probes.segment(p) < item;
        const unsigned before = __ballot_sync(kFullMask, is_before) >> half & (kFullMask >> kSearchLanes);
        low += static_cast<Index>(__popc(before)) * probes.stride;
      });
      if (probes.stride > 0 && low + probes.stride - 1 < high) high = low + probes.stride - 1;
      if (!__any_sync(kFullMask, low < high)) return low;
      probes = Probes(arrays, low, high);
    }
  }
};

}  // namespace hone
