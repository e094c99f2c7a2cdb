// The merge path of segment ends and elements, and the search for positions on it.
//
// The merge path is that of Green, Odeh and Birk (Merge path – a visually intuitive approach to parallel merging,
// 2014), used as Merrill and Garland do for CSR matrices (Merge-based parallel sparse matrix-vector multiplication,
// 2016). Item k of a call is an element, or the end of a segment, which comes right behind the segment's last element.
// The end of segment s is item offsets[s + 1] − offsets[0] + s, which increases strictly, so a search finds any
// position.
#pragma once

namespace hone {

/// A position on the merge path: in front of item `item`; `segment` ends come before it.
template <class Index>
struct PathPosition {
  Index item, segment;
};

template <class Arrays, unsigned kBlockThreads, unsigned kTileItems, unsigned kMaxEnds>
struct PathSearch {
  using Index = typename Arrays::Index;
  using Position = PathPosition<Index>;

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

}  // namespace hone
