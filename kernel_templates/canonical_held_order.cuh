// The order in which the States of the rows of canonical_softmax_held.cuh are combined: that of the canonical tree.
//
// A tree chunk is a chunk of that tree, 2 KiB. The block's part of a row is whole tree chunks. It keeps their sums
// behind the rings, and publishes the trees of runs of 2^run_levels of them. A run may begin in one part and end in the
// next (canonical_shared_runs.cuh): the block of that one publishes it. Each of these States has the heaviest element
// of all of the block's part: such elements may be combined in any order.
#pragma once

#include "canonical_shared_runs.cuh"

namespace hone {

/// The tree of up to 2^10 nodes, which all lanes of a warp push.
template <class Op>
class TreeOfNodes {
 public:
  using State = typename Op::State;

  __device__ void push(State node) {
    last_ = node;
    keep(low_, pushed_ % kWarpThreads, node);
    if (++pushed_ % kWarpThreads != 0) return;
    keep(high_, pushed_ / kWarpThreads - 1, in_all_lanes(low_));
    low_ = Op::absent();
  }
  __device__ State root() const {
    if (pushed_ == 1) return last_;
    if (pushed_ < kWarpThreads) return in_all_lanes(low_);
    State high = high_;
    keep(high, pushed_ / kWarpThreads, in_all_lanes(low_));
    return in_all_lanes(high);
  }

 private:
  static __device__ State in_all_lanes(State state) {
    return CanonicalCombine<Op>::template in_all_lanes<kWarpThreads>(state);
  }
  static __device__ void keep(State& state, unsigned lane, State of_lane) {
    if (threadIdx.x % kWarpThreads == lane) state = of_lane;
  }

  State last_, low_ = Op::absent(), high_ = Op::absent();  ///< low_: a node in each lane; high_: those of 32 of them
  unsigned pushed_ = 0;
};

/// States are those of runs of tree chunks; a warp's Share is its heaviest element, and whether some are low.
template <class Types, class Rows>
struct CanonicalHeldOrder {
  using Acc = typename Types::Acc;
  using State = typename SoftmaxSum<Types>::State;
  using Heaviest = HeaviestElement<Types>;
  using Weight = SoftmaxWeight<Types>;
  using SharedRuns = CanonicalSharedRuns<Types, Rows>;
  static constexpr bool kMaySumAgain = true, kKeepsSums = true, kHasNodes = true, kKeepsShares = true;
  static constexpr bool kMayShareRuns = Types::kIsAligned;
  static constexpr unsigned kPaddingPacks = Rows::kPaddingPacks;

  /// A lane combines neighbours first, and then a warp those of its lanes.
  static constexpr unsigned kLaneLevels = 3, kOfLane = 1 << kLaneLevels, kWarpLevels = kLaneLevels + 5;

  struct Share {
    Acc heaviest;
    unsigned has_low;  ///< 1 if some that are written are less than the guessed powers' lowest, or may be
  };
  static __device__ Share no_share(const Rows&) { return {Heaviest::absent(), 0}; }
  static __device__ Share in_all_lanes(const Share& share, const Rows&) {
    return {CanonicalCombine<Heaviest>::template in_all_lanes<kWarpThreads>(share.heaviest),
            __any_sync(kFullMask, share.has_low != 0) ? 1u : 0u};
  }

  struct States {
    unsigned first, count;
  };

  /// Blocks without elements publish States, too: no block may be so far ahead that it overwrites those of others.
  static __device__ unsigned states_of_row(const Rows& all) { return runs_before(gridDim.x, all); }
  static __device__ States states_of_part(const Rows& all) {
    const unsigned first = runs_before(blockIdx.x, all);
    return {first, runs_before(blockIdx.x + 1, all) - first};
  }

  static __device__ bool share_runs(const Rows& all) { return SharedRuns::are_in(all); }
  static __device__ States pieces_of_part(const Rows& all) {
    if (!share_runs(all)) return {0, 0};
    return {states_of_row(all) + blockIdx.x * SharedRuns::kPieces, SharedRuns::kPieces};
  }
  static __device__ unsigned places_of_row(const Rows& all) {
    return states_of_row(all) + (share_runs(all) ? gridDim.x * SharedRuns::kPieces : 0);
  }
  static __device__ SharedRuns shared_runs(const Share& share, TaggedState<State>* states, unsigned r, unsigned lane,
                                           const Rows& all) {
    return {all, states, states + states_of_row(all), share.heaviest, r, lane};
  }

  static __device__ void for_states(const Share& share, unsigned r, unsigned lane, const Rows& all, const auto& act) {
    const unsigned levels = all.arguments.run_levels, part = all.part_tree_chunks(), chunks = all.tree_chunks();
    const auto begins_run = [&](unsigned at) { return (at & ((1u << levels) - 1)) == 0; };
    const Acc* const sums = all.chunk_sums(r);
    TreeOfNodes<Weight> tree;  // of runs that are longer than those of a warp
#pragma unroll 1
    for (unsigned begin = 0; begin < part; begin += kWarpThreads * kOfLane) {
      const unsigned at = begin + lane * kOfLane;
      Acc of_lane[kOfLane];
      unrolled<kOfLane>([&](unsigned i) { of_lane[i] = at + i < chunks ? sums[at + i] : Weight::absent(); });
#pragma unroll
      for (unsigned level = 0; level < kLaneLevels; ++level) {
        if (level == levels) break;
#pragma unroll
        for (unsigned i = 0; i < kOfLane >> (level + 1); ++i)
          of_lane[i] = Weight::combine(of_lane[2 * i], of_lane[2 * i + 1]);
      }
      if (levels < kLaneLevels) {
#pragma unroll
        for (unsigned i = 0; i < kOfLane; ++i)
          if (i < kOfLane >> levels && at + (i << levels) < part)
            act((at >> levels) + i, State{of_lane[i], share.heaviest});
        continue;
      }
      Acc sum = of_lane[0];
      if (levels <= kWarpLevels) {
#pragma unroll 1
        for (unsigned level = kLaneLevels; level < levels; ++level)
          sum = Weight::combine(sum, shuffle_xor(sum, 1u << (level - kLaneLevels)));
        if (at < part && begins_run(at)) act(at >> levels, State{sum, share.heaviest});
        continue;
      }
      tree.push(CanonicalCombine<Weight>::template in_all_lanes<kWarpThreads>(sum));
      if (!begins_run(begin + kWarpThreads * kOfLane)) continue;
      const Acc of_run = tree.root();
      if (lane == 0) act(begin >> levels, State{of_run, share.heaviest});
      tree = {};
    }
  }

  /// Runs that end in the first `parts` parts.
  static __device__ unsigned runs_before(unsigned parts, const Rows& all) {
    return parts * all.part_tree_chunks() >> all.arguments.run_levels;
  }

  /// As in AnyOrder. fold_lanes() combines lanes first whose highest bits differ.
  static constexpr unsigned kStatesOfLane = 5, kNodeStates = 128;
  static __device__ unsigned state_of_lane(unsigned lane, unsigned i) {
    return i * kWarpThreads + (__brev(lane) >> 27);
  }

  /// The node of the States of all lanes. The sums of five take 12 shuffles, not one for each level and State.
  template <unsigned kCount>
  static __device__ State node_of(const State (&states)[kCount]) {
    constexpr unsigned kAll = kCount == 1 ? 1 : 8;
    static_assert(kCount <= kAll);
    Acc sums[kAll], heaviest = Heaviest::absent();
    unrolled<kAll>([&](unsigned i) { sums[i] = i < kCount ? states[i].sum : Weight::absent(); });
    unrolled<kCount>([&](unsigned i) { heaviest = Heaviest::combine(heaviest, states[i].heaviest); });
    return {fold_lanes<CanonicalSum<Acc>, 1, kAll>(sums),
            CanonicalCombine<Heaviest>::template in_all_lanes<kWarpThreads>(heaviest)};
  }
  /// The node of a node of each lane.
  static __device__ State node_of(const State& node) {
    return CanonicalCombine<SoftmaxSum<Types>>::template in_all_lanes<kWarpThreads>(node);
  }

  /// The tree of a row's States.
  class RowState {
   public:
    explicit __device__ RowState(const Rows&) {}

    __device__ void add(const auto& states) { tree_.push(node_of(states)); }
    __device__ State in_all_lanes() const { return tree_.root(); }

   private:
    TreeOfNodes<SoftmaxSum<Types>> tree_;
  };
};

}  // namespace hone
