// SegmentTiles: a warp reduces its share of the merge path, tile by tile.
//
// The elements of a tile are staged in shared memory; each lane loads neighbouring ones into registers, and the next
// tile's are copied, and offsets of the segments behind this tile loaded, while it is reduced. Lanes set a bit for each
// element that is the last of a segment, in the word of the lane that has it. Each lane goes through its elements
// without a branch: it stores the State up to
// each of them in shared memory, and begins anew behind a last one. A segmented scan over the lanes completes the State
// of the first segment that ends in each. The lanes with offsets then read the States of their segments, and write
// results. A tile in which no segment ends is accumulated like any array.
//
// Where a tile has more ends than a window of offsets, it is reduced in parts, and lanes go through elements outside of
// the part in vain: the beginning of a part counts as an end, whose State nobody collects.
#pragma once

#include "lane_tile.cuh"
#include "segment_window.cuh"

namespace hone {

template <class Op, class Arrays, unsigned kPacks>
class SegmentTiles {
 public:
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Elements = LaneTile<In, kPacks>;
  static constexpr unsigned kPackElements = Elements::kPackElements;
  static constexpr unsigned kLaneElements = Elements::kLaneElements;
  static constexpr unsigned kTileElements = Elements::kElements;
  static_assert(kLaneElements <= 32, "the ends in a lane are bits of one word");
  static constexpr unsigned kLineBytes = 256;  ///< that tiles are aligned to: see PackRange::packs_before_line()

  using Window = SegmentWindow<Arrays, kLaneElements>;
  using ElementPack = typename Elements::ElementPack;
  /// From the States of a lane to those of the next, in 16 bytes: an odd number, so that there are no bank conflicts.
  static constexpr unsigned kStatesPitch = (kLaneElements * sizeof(State) + 15) / 16 | 1;

  struct Shared {
    Elements elements;
    unsigned ends[kWarpThreads];  ///< bit i of a lane's: its element i is the last of a segment
    Pack<unsigned, 4> states[kWarpThreads * kStatesPitch];  ///< for each element, that of the segment up to there
  };

  __device__ SegmentTiles(const Arrays& arrays, const PathShare<Index>& share, Shared& shared)
      : arrays_(arrays), share_(share), shared_(shared), window_(arrays, share.first_segment, share.behind_segments) {}

  /// Leaves partials in `carry`; its head only if the share's first segment ends in the share.
  __device__ void reduce(Carry<Op>& carry) {
    const In* in = arrays_.in + share_.first_element;
    TilePart<Index> part{share_.first_element, elements_behind_alignment<kLineBytes>(in), 0};
    in -= part.from;
    part.first -= part.from;
    // The first and the last pack may have elements of other shares, which spares them single loads.
    const unsigned before = at_most(share_.before, part.from % kPackElements);
    const auto past_pack = static_cast<unsigned>(part.first - share_.behind_elements) % kPackElements;
    const Index copied = share_.behind_elements + at_most(share_.behind, past_pack);
    shared_.ends[lane_] = 0;
    shared_.elements.copy(in, part.from - before, copied - part.first);
    while (true) {
      const Index left = share_.behind_elements - part.first;
      wait_for_copies();
      __syncwarp();
      ElementPack packs[kPacks];
      unrolled<kPacks>([&](unsigned u) { packs[u] = shared_.elements.of_lane()[u]; });
      __syncwarp();
      in += kTileElements;
      if (left > kTileElements) shared_.elements.copy(in, 0, copied - part.first - kTileElements);
      bool is_rest;
      do {
        part.behind = at_most(left, kTileElements);
        is_rest = reduce_part(packs, part, carry);
      } while (!is_rest);
      if (left <= kTileElements) break;
      part.first += kTileElements;
      part.from = 0;
    }
    collapse();
    if (lane_ == 0) {
      carry.segment = share_.first_segment;
      carry.tail = carry_;
    }
  }

 private:
  /// Each lane accumulates its elements, of which the first has index `index` in its segment.
  __device__ void accumulate(const ElementPack (&packs)[kPacks], Index index) {
    Op::template accumulate<true>(carry_, packs, index, Index(kPackElements));
    is_spread_ = true;
  }

  /// Combines what the lanes have accumulated, in the first.
  __device__ void collapse() {
    if (is_spread_) carry_ = in_first_lane(lanes_reduce<Op, kWarpThreads>(carry_));
    is_spread_ = false;
  }

  __device__ State in_first_lane(State state) const { return lane_ == 0 ? state : Op::identity(); }

  /// Reduces a part of a tile, and returns true; or what the window has ends for, and `part` begins behind that.
  __device__ bool reduce_part(const ElementPack (&packs)[kPacks], TilePart<Index>& part, Carry<Op>& carry) {
    using Segment = typename Window::Segment;
    const unsigned ends = window_.ends_up_to(part.first + part.behind);
    if (ends == 0 && part.from == 0 && part.behind == kTileElements) {
      accumulate(packs, part.first + lane_ * kLaneElements - window_.begin());
      return true;
    }
    const Window next(arrays_, window_.first + ends, share_.behind_segments);  // loads while the part is reduced
    collapse();
    const bool is_rest = ends + 1 < Window::kOffsets;
    const unsigned rounds = is_rest ? (ends + 1) / kWarpThreads + 1 : Window::kRounds;
    if (!is_rest) part.behind = window_.last_place(part);
    Segment segments[Window::kRounds];
    window_.segments(segments, rounds, part);
#pragma unroll
    for (unsigned r = 0; r < Window::kRounds; ++r) {
      if (r >= rounds) break;
      const Segment& one = segments[r];
      if (one.is_empty()) continue;
      atomicOr(&shared_.ends[one.lane()], one.bit());
    }
    __syncwarp();
    const unsigned ends_here = shared_.ends[lane_];
    shared_.ends[lane_] = 0;
    if (part.from < part.behind) reduce_elements(packs, ends_here, part);
    __syncwarp();

    carry_ = Op::identity();
#pragma unroll
    for (unsigned r = 0; r < Window::kRounds; ++r) {
      if (r >= rounds) break;
      const Segment& one = segments[r];
      State state = Op::identity();
      if (!one.is_empty()) state = state_at(one.lane(), one.element());
      const unsigned number = Window::number_of(r);
      const Index segment = window_.first + number - 1;
      if (number > 0 && number <= ends) {
        if (segment == share_.first_segment) carry.head = state;
        else arrays_.write(segment, arrays_.offset(segment + 1) - arrays_.offset(segment), state);
      }
      if (is_rest && r + 1 == rounds) carry_ = in_first_lane(shuffle_from(state, (ends + 1) % kWarpThreads));
    }
    window_ = next;
    part.from = part.behind;
    return is_rest;
  }

  /// The place in shared memory of a State.
  __device__ Words<State>& state_at(unsigned lane, unsigned element) {
    return reinterpret_cast<Words<State>*>(shared_.states + lane * kStatesPitch)[element];
  }

  /// Stores for each element of the lane the State of its segment up to there. Bit i of `ends`: it ends with element i.
  __device__ void reduce_elements(const ElementPack (&packs)[kPacks], unsigned ends, const TilePart<Index>& part) {
    const unsigned with_end = __ballot_sync(kFullMask, ends != 0);
    // Where the segment behind a place begins: that of the part, perhaps in another share.
    const Index begin_of_part = window_.begin_at(part.first + part.from);
    const auto begin_behind = [&](unsigned place) { return place == part.from ? begin_of_part : part.first + place; };
    const unsigned before = with_end & ((1u << lane_) - 1);
    const unsigned nearest = highest_bit(before) % kWarpThreads;
    const unsigned last = highest_bit(shuffle_from(ends, nearest));
    Index begin = before == 0 ? begin_of_part : begin_behind(nearest * kLaneElements + last + 1);

    State state = carry_;
    unrolled<kPacks>([&](unsigned u) {
      unrolled<kPackElements>([&](unsigned e) {
        const unsigned i = u * kPackElements + e, place = lane_ * kLaneElements + i;
        state = Op::combine(state, Op::of(packs[u][e], part.first + place - begin));
        state_at(lane_, i) = state;
        if ((ends >> i & 1) == 0) return;
        state = Op::identity();
        begin = begin_behind(place + 1);
      });
    });
    const State carried = of_lane_before<Op>(tails_up_to_here<Op>(state, with_end));
    if (ends == 0) return;
    Words<State>& first = state_at(lane_, static_cast<unsigned>(__ffs(static_cast<int>(ends))) - 1);
    first = Op::combine(carried, first);
  }

  const Arrays& arrays_;
  const PathShare<Index>& share_;
  Shared& shared_;
  Window window_;
  State carry_ = Op::identity();  ///< of the segment that is open: in the first lane, or in all if is_spread_
  bool is_spread_ = false;
  const unsigned lane_ = threadIdx.x % kWarpThreads;
};

}  // namespace hone
