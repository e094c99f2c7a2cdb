// Runs of tree chunks (canonical_held_order.cuh) where parts are not whole runs: one that begins in a part, and is not
// whole there, ends in the next one.
//
// A part has whole nodes of eight tree chunks, fewer than a warp has lanes, and no fewer than a run. Of the run that it
// does not end, a block publishes the largest nodes that there are, one for each bit of their number: pieces.
// The next block goes up the tree from the first of its own nodes that has such a piece on its left. Further up, each
// level has either a piece of that level on the left or a node of the block's own on the right.
#pragma once

#include "canonical_held_rows.cuh"
#include "tagged_state.cuh"

namespace hone {

template <class Types, class Rows>
struct CanonicalSharedRuns {
  using Acc = typename Types::Acc;
  using Weight = SoftmaxWeight<Types>;
  using State = typename SoftmaxSum<Types>::State;
  static constexpr unsigned kNodeLevels = 3, kNodeChunks = 1 << kNodeLevels;
  static constexpr unsigned kPieces = 4;  ///< of a part, at most: a run has up to 16 nodes
  static constexpr unsigned kStaged = kPieces + 2;  ///< a part is shorter than two runs, so that two end in it at most

  const Rows& all;
  TaggedState<State>*states, *pieces;  ///< of all blocks
  Acc heaviest;                        ///< element of the part
  unsigned r, lane;

  unsigned levels = all.arguments.run_levels - kNodeLevels, run = 1u << levels;  ///< of nodes
  unsigned count = all.part_tree_chunks() / kNodeChunks, first = blockIdx.x * count;  ///< the part's nodes
  unsigned before = first % run;           ///< nodes of the run that the part before does not end
  unsigned behind = (first + count) % run;  ///< of the one that this part does not end

  static __device__ bool are_in(const Rows& all) {
    return (all.part_tree_chunks() & ((1u << all.arguments.run_levels) - 1)) != 0;
  }

  /// Publishes the pieces of the block, which wait for nobody, and then the runs that end in its part. All lanes of a
  /// warp call it, with room for kStaged States in shared memory, when all blocks have cleared their tags.
  __device__ void publish(TaggedState<State>* staged) const {
    wait_for_staged();
    if (lane < kPieces) staged[lane].clear();
    __syncwarp();
    Acc nodes[kPieces + 1];  // of each level, that which the lane's node is in, if the part has all of it
    nodes[0] = node_of_lane();
    Acc of_run = nodes[0];
    unrolled<kPieces>([&](unsigned level) {
      const unsigned apart = 1u << level;
      const unsigned neighbour = ((first + lane) & apart) != 0 ? lane - apart : lane + apart;
      nodes[level + 1] = Weight::combine(nodes[level], shuffle_from(nodes[level], neighbour % kWarpThreads));
      if (level < levels) of_run = nodes[level + 1];
      const unsigned at = count - (behind & ((2u << level) - 1));
      if ((behind & apart) != 0 && lane == at) stage(staged[level], nodes[level]);
    });
    if (behind != 0 && blockIdx.x + 1 < gridDim.x)
      raise_states(pieces + blockIdx.x * kPieces, staged, kPieces, lane);
    const unsigned first_run = first / run;
    TaggedState<State>* const runs = staged + kPieces;
    if ((first + lane) % run == 0 && lane + run <= count) stage(runs[(first + lane) / run - first_run], of_run);
    if (before != 0) {
      const Acc of_shared = shared_run(nodes);
      if (lane == 0) stage(runs[0], of_shared);
    }
    raise_states(states + first_run, runs, (first + count) / run - first_run, lane);
  }

 private:
  __device__ void stage(TaggedState<State>& at, const Acc& sum) const { at.publish(State{sum, heaviest}, r + 1); }

  __device__ Acc node_of_lane() const {
    const unsigned at = lane * kNodeChunks, chunks = all.tree_chunks();
    const Acc* const sums = all.chunk_sums(r);
    return fold_leaves<Weight, kNodeChunks>([&](unsigned i) {
      const unsigned chunk = at + reversed_bits(i, kNodeLevels);
      return chunk < chunks ? sums[chunk] : Weight::absent();
    });
  }

  /// The tree of the run that the part before does not end, when its pieces are there.
  __device__ Acc shared_run(const Acc (&nodes)[kPieces + 1]) const {
    const Acc piece = piece_of_lane();
    const unsigned lowest = __ffs(static_cast<int>(before)) - 1;
    Acc sum = Weight::absent();
    unrolled<kPieces>([&](unsigned level) {
      const unsigned apart = 1u << level, above = before & ~(2 * apart - 1);
      const Acc left = shuffle_from(piece, level);
      const Acc right = shuffle_from(nodes[level], (above + apart - before) % kWarpThreads);
      const bool has_piece = (before & apart) != 0;
      if (level == lowest) sum = Weight::combine(left, right);
      else if (level > lowest && level < levels)
        sum = has_piece ? Weight::combine(left, sum) : Weight::combine(sum, right);
    });
    return sum;
  }

  /// Lane l gets the piece of level l, if there is one.
  __device__ Acc piece_of_lane() const {
    State piece[1] = {};
    bool is_there[1] = {lane >= kPieces || (before >> lane & 1) == 0};
    read_when_there(piece, is_there, r + 1,
                    [&](unsigned) -> auto& { return pieces[(blockIdx.x - 1) * kPieces + lane]; });
    return piece[0].sum;
  }
};

}  // namespace hone
