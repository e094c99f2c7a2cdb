// AnyOrder: how the blocks of row_held.cuh make the State of a row, if its parts may be combined in any order.
#pragma once

#include "grid.cuh"

namespace hone {

template <class Kernel>
struct AnyOrder {
  using State = typename Kernel::State;
  using Rows = typename Kernel::Rows;

  /// True if a row's State may be made a second time, from States that know the first.
  static constexpr bool kMaySumAgain = false;

  /// True if sums of a part are kept in shared memory, in the place of those of an earlier row.
  static constexpr bool kKeepsSums = false;

  /// True if node_of(states) is the node of the States of all lanes, and node_of(node) that of a node of each lane.
  static constexpr bool kHasNodes = false;

  /// True if results ask for the Share of the block's part.
  static constexpr bool kKeepsShares = false;

  /// Packs of a slot behind those of its chunk, a whole line. If there are some, chunks of rows of which parts begin
  /// before the first pack (packs_behind_line) have the next pack of the row, too, to be added up, not to be written.
  static constexpr unsigned kPaddingPacks = 0;

  /// A Share is what a warp found of a part, and no other warp of the block may read elsewhere. in_all_lanes() combines
  /// those of all lanes.
  using Share = State;
  static __device__ Share no_share(const Rows& all) { return Kernel::op(all).identity(); }
  static __device__ Share in_all_lanes(const Share& share, const Rows& all) {
    return Kernel::op(all).template in_all_lanes<kWarpThreads>(share);
  }

  /// True if a State may be that of a run of chunks that two neighbouring parts share.
  static constexpr bool kMayShareRuns = false;

  /// The States of a row, and their places in the workspace.
  static __device__ unsigned states_of_row(const Rows&) { return gridDim.x; }
  static __device__ unsigned places_of_row(const Rows&) { return gridDim.x; }

  /// The first of the States of a row that are the block's, and how many these are.
  struct States {
    unsigned first, count;
  };
  static __device__ States states_of_part(const Rows&) { return {blockIdx.x, 1}; }

  /// Calls act(number, state) for these States, counted from the first. All lanes of a warp call it with what the block's
  /// warps found of row r.
  static __device__ void for_states(const Share& of_block, unsigned, unsigned lane, const Rows&, const auto& act) {
    if (lane == 0) act(0, of_block);
  }

  /// The States that a lane loads at once, and which: a warp has all of up to 160 then, or takes kNodeStates at once.
  static constexpr unsigned kStatesOfLane = 5, kNodeStates = kStatesOfLane * kWarpThreads;
  static __device__ unsigned state_of_lane(unsigned lane, unsigned i) { return lane + i * kWarpThreads; }

  /// Combines the States of a row.
  class RowState {
   public:
    explicit __device__ RowState(const Rows& all) : op_(Kernel::op(all)), of_lane_(op_.identity()) {}

    template <unsigned kOfLane>
    __device__ void add(const State (&states)[kOfLane]) {
      unrolled<kOfLane>([&](unsigned i) { of_lane_ = op_.combine(of_lane_, states[i]); });
    }
    __device__ State in_all_lanes() const { return op_.template in_all_lanes<kWarpThreads>(of_lane_); }

   private:
    typename Kernel::Op op_;
    State of_lane_;
  };
};

}  // namespace hone
