// The arrays of segmented reductions, and the carries of segments across threads or blocks: a segmented scan.
//
// Each participant (thread or block, in order) has a tail: the elements behind its last segment end, or all of its
// elements if no segment ends in it. The carry into a participant is the combination of the tails since the last
// participant with an end; it completes the first segment that ends there.
#pragma once

#include "grid.cuh"
#include "pack_range.cuh"
#include "segments_arguments.h"

namespace hone {

inline constexpr unsigned kPackBytes = 16;

/// The arrays of a call, in CSR form: segment s is in[offsets[s] … offsets[s + 1]). It has kOutputs contiguous results.
template <class Op, class Offset, class Out, unsigned kOutputs>
struct Segments {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;

  const SegmentsArguments& all;
  const In* in = static_cast<const In*>(all.in);
  const Offset* offsets = static_cast<const Offset*>(all.offsets);
  Index count = static_cast<Index>(all.segments);
  Out* out = static_cast<Out*>(all.out);

  __device__ Index offset(Index i) const { return static_cast<Index>(offsets[i]); }

  /// The elements [first, last) of the segment that starts at `begin`.
  __device__ auto range(Index first, Index last, Index begin) const {
    using Source = OneArray<In, kPackBytes / sizeof(In)>;
    return PackRange<Source, Index>::of({in + first}, last - first, first - begin);
  }

  /// Writes the results of a segment of n elements.
  __device__ void write(Index segment, Index n, State state) const { Op::write(state, n, out + segment * kOutputs); }
};

/// A segmented scan over a warp: the tails since the last lane with an end, which has its bit in `with_end`, combined.
template <class Op>
__device__ typename Op::State tails_up_to_here(typename Op::State tail, unsigned with_end) {
  const unsigned lane = threadIdx.x % kWarpThreads;
  const unsigned up_to_here = with_end & (kFullMask >> (kWarpThreads - 1 - lane));
  const unsigned first_of_run =
      up_to_here == 0 ? 0 : kWarpThreads - 1 - static_cast<unsigned>(__clz(static_cast<int>(up_to_here)));
#pragma unroll
  for (unsigned offset = 1; offset < kWarpThreads; offset *= 2) {
    const auto before = shuffle_up(tail, offset);
    if (lane >= first_of_run + offset) tail = Op::combine(before, tail);
  }
  return tail;
}

/// Returns `value` of the lane before; the identity in the first lane.
template <class Op>
__device__ typename Op::State of_lane_before(typename Op::State value) {
  const auto before = shuffle_up(value, 1);
  return threadIdx.x % kWarpThreads == 0 ? Op::identity() : before;
}

/// An exclusive segmented scan over the block: the carry into this thread, the tails since the last thread with an end.
/// Thread 0 gets the tail of the block in `all`. All kThreads threads call it, with a barrier between two calls.
template <class Op, unsigned kThreads>
__device__ typename Op::State carried_in(typename Op::State tail, bool has_end, typename Op::State& all) {
  using State = typename Op::State;
  constexpr unsigned kWarps = kThreads / kWarpThreads;
  __shared__ State of_warp[kWarps];
  __shared__ unsigned ends_in_warp[kWarps];
  const unsigned lane = threadIdx.x % kWarpThreads;
  const unsigned warp = threadIdx.x / kWarpThreads;

  const unsigned with_end = __ballot_sync(kFullMask, has_end);
  tail = tails_up_to_here<Op>(tail, with_end);
  if (lane == kWarpThreads - 1) {
    of_warp[warp] = tail;
    ends_in_warp[warp] = with_end;
  }
  State before = of_lane_before<Op>(tail);
  __syncthreads();

  // Each warp scans over the tails of all warps.
  const bool is_of_warp = lane < kWarps;
  const unsigned warps_with_end = __ballot_sync(kFullMask, is_of_warp && ends_in_warp[lane % kWarps] != 0);
  const State up_to_warp =
      tails_up_to_here<Op>(is_of_warp ? of_warp[lane % kWarps] : Op::identity(), warps_with_end);
  const State of_block = shuffle_from(up_to_warp, kWarps - 1);
  const State before_warp = shuffle_from(of_lane_before<Op>(up_to_warp), warp);
  const bool is_first_of_warp = (with_end & ((1u << lane) - 1)) == 0;
  if (has_end && is_first_of_warp) before = Op::combine(before_warp, before);
  if (threadIdx.x == 0) all = of_block;
  return before;
}

/// The partials of a block, in the workspace behind the header.
template <class Op>
struct Carry {
  using State = typename Op::State;
  using Index = typename Op::Index;

  Words<Index> segment;  ///< in which the block begins; another one in the next block means that a segment ended
  Words<State> head;     ///< the block's part of that segment, if the segment ends in the block
  Words<State> tail;     ///< the elements behind the last end, or all elements
};

/// Completes the first segment that ends in each of `blocks` blocks. Called by one block of kThreads threads.
template <class Op, unsigned kThreads, class Arrays>
__device__ void combine_carries(const Arrays& arrays, void* workspace, unsigned blocks) {
  using State = typename Op::State;
  using Index = typename Op::Index;
  const Carry<Op>* const carries = partials_in<Carry<Op>>(workspace);
  State carry = Op::identity();  // in thread 0, from one iteration to the next
  for (unsigned first = 0; first < blocks; first += kThreads) {
    const unsigned b = first + threadIdx.x;
    Index segment = 0;
    bool has_end = false;
    State head = Op::identity();
    State tail = Op::identity();
    if (b < blocks) {
      segment = load_from_l2(&carries[b].segment);
      has_end = segment < (b + 1 < blocks ? load_from_l2(&carries[b + 1].segment).value() : arrays.count);
      tail = load_from_l2(&carries[b].tail);
      if (has_end) head = load_from_l2(&carries[b].head);
    }
    if (threadIdx.x == 0) (has_end ? head : tail) = Op::combine(carry, has_end ? head : tail);
    const State before = carried_in<Op, kThreads>(tail, has_end, carry);
    if (has_end) arrays.write(segment, arrays.offset(segment + 1) - arrays.offset(segment), Op::combine(before, head));
    __syncthreads();
  }
}

}  // namespace hone
