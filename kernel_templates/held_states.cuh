// HeldStates: how the blocks of row_held.cuh make the State of a row of what each of them found of its part.
#pragma once

#include "grid.cuh"
#include "held_order.cuh"
#include "held_copies.cuh"
#include "tagged_state.cuh"

namespace hone {

template <class Kernel, class Roles_>
struct HeldStates : HeldCopies<Kernel, Roles_> {
  using Parts = HeldCopies<Kernel, Roles_>;
  using typename Parts::Roles, typename Parts::State;
  using Parts::all, Parts::arguments, Parts::kMostRows, Parts::kMostStaged, Parts::shared;
  using Order = typename Kernel::Order;
  static constexpr unsigned kRing = 2 * kMostRows, kAgainRows = Order::kMaySumAgain ? 2 : 0;
  static constexpr unsigned kStatesOfLane = Order::kStatesOfLane, kNodeStates = Order::kNodeStates;
  static constexpr unsigned kStatesAtOnce = kStatesOfLane * kWarpThreads;

  static constexpr bool kMayShareRuns = Roles::kPassFirst && Order::kMayShareRuns;

  /// A few States are raised in bulk: stores would wait for those of results. If blocks take one row at a time, and
  /// rows of trees begin anywhere, code for that would spill registers: softmax of 4 rows of 2^24 + 1 f16 takes 95.9 µs
  /// so, and 95.5 with stores (H200, CUDA 13.0, 2026-11-30).
  static constexpr bool kRaises = !(Roles::kPassFirst && Order::kPaddingPacks > 0);

  /// The States of a row, of which the workspace has kRing + kAgainRows.
  __device__ TaggedState<State>* states(unsigned place) const {
    return partials_in<TaggedState<State>>(arguments.workspace) + place * Order::places_of_row(all);
  }

  /// Called by all warps but those that load, which have copies in flight meanwhile.
  __device__ void clear_states() const {
    clear(Order::states_of_part(all));
    if constexpr (kMayShareRuns) clear(Order::pieces_of_part(all));
    __syncwarp();
    if (threadIdx.x % kWarpThreads == 0) arrive(&shared.cleared);
  }

  /// Notes what a warp has added up of row r, and arrives. All lanes of the warp call it. Warps behind those of a group
  /// are those of the other one, which helps with row 0.
  __device__ void share(const auto& sums, unsigned r, unsigned warp, unsigned thread) const {
    const auto share = Order::in_all_lanes(Kernel::state_of(sums, all), all);
    __syncwarp();
    if (thread % kWarpThreads != 0) return;
    share_of(r % kMostRows, warp) = share;
    arrive(is_helper(warp) ? &shared.helped : shared.summed + r % kMostRows);
  }
  __device__ auto& share_of(unsigned place, unsigned warp) const {
    return is_helper(warp) ? shared.of_helper[warp - Roles::kGroupWarps] : shared.of_warp[place][warp];
  }
  static __device__ bool is_helper(unsigned warp) { return Roles::kPassFirst && warp >= Roles::kGroupWarps; }

  /// Waits until a group has added up row r.
  __device__ void wait_for_group(unsigned r) const {
    sleep_until_phase(shared.summed + r % kMostRows, r / kMostRows % 2);
  }

  /// True if some States are those of two neighbouring parts.
  __device__ bool share_runs() const {
    if constexpr (kMayShareRuns) return Order::share_runs(all);
    else return false;
  }

  /// Publishes the States of row r, of which `place` has what `warps` of the block's warps found. All lanes of a warp
  /// call it.
  __device__ void publish(TaggedState<State>* states, unsigned place, unsigned r, unsigned lane, unsigned warps) const {
    const auto of_lane = lane < warps ? share_of(place, lane).value() : Order::no_share(all);
    const auto of_block = Order::in_all_lanes(of_lane, all);
    if (share_runs()) publish_shared_runs(of_block, states, r, lane);
    else publish_whole_runs(of_block, states, r, lane);
    if constexpr (Order::kKeepsShares) {
      if (lane == 0) shared.of_block[place] = of_block;
    }
  }

  /// The State of row r, from those of all blocks, of which a lane takes kOfLane at once.
  template <unsigned kOfLane = kStatesOfLane>
  __device__ State row_state(TaggedState<State>* states, unsigned r, unsigned lane) const {
    constexpr unsigned kAtOnce = kOfLane * kWarpThreads, kOfNode = kAtOnce < kNodeStates ? kAtOnce : kNodeStates;
    typename Order::RowState state(all);
    const unsigned count = Order::states_of_row(all);
#pragma unroll 1
    for (unsigned begin = 0, end; begin < count; begin = end) {
      end = count <= kAtOnce ? count : at_most(begin + kOfNode, count);
      State some[kOfLane];
      wait_for_states(some, states, begin, end, lane, r);
      state.add(some);
    }
    return state.in_all_lanes();
  }

  /// True if the States of a row are so many that the combining warps make its State together.
  __device__ bool combine_together() const {
    const unsigned count = Order::states_of_row(all);
    return Order::kHasNodes && Roles::kCombiningWarps > 1 && count > kStatesAtOnce &&
           count <= Parts::kMostNodes * kNodeStates;
  }

  /// The State of row r, by all combining warps, which call it for each row.
  __device__ State row_state_together(TaggedState<State>* states, unsigned r, unsigned warp, unsigned lane) const
    requires Order::kHasNodes
  {
    const unsigned count = Order::states_of_row(all);
    auto* const nodes = shared.nodes[r % 2];
#pragma unroll 1
    for (unsigned node = warp; node * kNodeStates < count; node += Roles::kCombiningWarps) {
      State some[kStatesOfLane];
      wait_for_states(some, states, node * kNodeStates, at_most((node + 1) * kNodeStates, count), lane, r);
      const State of_node = Order::node_of(some);
      if (lane == 0) nodes[node] = of_node;
    }
    __syncwarp();
    if (lane == 0) arrive(&shared.gathered);
    sleep_until_phase(&shared.gathered, r % 2);
    const bool has_node = lane * kNodeStates < count;
    return Order::node_of(has_node ? nodes[lane].value() : Kernel::op(all).identity());
  }

 private:
  __device__ void clear(const auto& own) const {
    constexpr unsigned kLoading = Roles::kLoadingWarps * kWarpThreads;
#pragma unroll 1
    for (unsigned i = threadIdx.x - kLoading; i < own.count * (kRing + kAgainRows); i += Roles::kThreads - kLoading)
      states(i / own.count)[own.first + i % own.count].clear();
  }

  __device__ void publish_shared_runs(const auto& of_block, TaggedState<State>* states, unsigned r,
                                      unsigned lane) const {
    if constexpr (kMayShareRuns) {
      const auto runs = Order::shared_runs(of_block, states, r, lane, all);
      static_assert(runs.kStaged <= kMostStaged);
      runs.publish(shared.staged);
    }
  }

  __device__ void publish_whole_runs(const auto& of_block, TaggedState<State>* states, unsigned r,
                                     unsigned lane) const {
    const auto own = Order::states_of_part(all);
    const bool in_bulk = kRaises && own.count <= kMostStaged;
    TaggedState<State>* const of_part = states + own.first;
    if (in_bulk) wait_for_staged();
    Order::for_states(of_block, r, lane, all, [&](unsigned number, const State& state) {
      (in_bulk ? shared.staged : of_part)[number].publish(state, r + 1);
    });
    if (in_bulk) raise_states(of_part, shared.staged, own.count, lane);
  }

  /// Loads the lane's States of those from `first` to `end` when they are there; behind the last one they are the
  /// identity.
  template <unsigned kOfLane>
  __device__ void wait_for_states(State (&some)[kOfLane], TaggedState<State>* states, unsigned first, unsigned end,
                                  unsigned lane, unsigned r) const {
    bool is_there[kOfLane];
    unrolled<kOfLane>([&](unsigned i) {
      some[i] = Kernel::op(all).identity();
      is_there[i] = first + Order::state_of_lane(lane, i) >= end;
    });
    read_when_there(some, is_there, r + 1,
                    [&](unsigned i) -> auto& { return states[first + Order::state_of_lane(lane, i)]; });
  }
};

}  // namespace hone
