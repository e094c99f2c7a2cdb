// Makes the root of the canonical tree of a sequence of what all ranks have of it (canonical_shard.cuh): the same bits
// for any number of ranks, and however elements are spread over them.
//
// A warp a row, in a grid-stride loop, takes the shards in the order of ranks, and pushes their nodes into the tree of
// the chunks' numbers. A chunk that ranks share is assembled in registers, and pushed when its last element is there.
//
// Constraints: kBlockThreads is a multiple of 32; all.levels is above the level of any node, and at most 32.
#pragma once

#include "canonical_group.cuh"
#include "canonical_logsumexp.cuh"
#include "canonical_moments.cuh"
#include "grid.cuh"
#include "shard_nodes.cuh"

namespace hone {

/// Op on what it has made of elements before.
template <class Op>
struct OnLeaves : Op {
  using State = typename Op::State;
  static __device__ State prepared(State leaf) { return leaf; }
  static __device__ State leaf(State leaf) { return leaf; }
};

template <class Op_, bool kEdgesAreLeaves, class Out, unsigned kValues, unsigned kBlockThreads>
struct CombineShards {
  using Op = typename Select<kEdgesAreLeaves, OnLeaves<Op_>, Op_>::type;
  using State = typename Op::State;
  using Edge = typename Select<kEdgesAreLeaves, State, typename Op::In>::type;
  static constexpr unsigned kElements = kChunkElements<typename Op::In>, kRounds = kElements / kWarpThreads;

  static __device__ void run(const CombineShardsArguments& all) {
    pdl_release_then_wait();
    constexpr unsigned long long kWarps = kBlockThreads / kWarpThreads;
    for (auto row = blockIdx.x * kWarps + threadIdx.x / kWarpThreads; row < all.rows; row += gridDim.x * kWarps) {
      NodeTree<Op> tree;
      const unsigned long long n = push_shards(tree, all, row);
      const State root = tree.root();
      if (threadIdx.x % kWarpThreads == 0)
        Op::write(root, static_cast<typename Op::Index>(n), static_cast<Out*>(all.out) + row * kValues);
    }
  }

 private:
  /// A chunk that ranks share: its first `filled` elements, number u · 32 + lane as elements[u].
  struct CutChunk {
    Edge elements[kRounds];
    unsigned filled = 0;

    __device__ void append(const Edge* edges, unsigned count) {
      const unsigned end = filled + count;
#pragma unroll
      for (unsigned u = 0; u < kRounds; ++u) {
        const unsigned number = u * kWarpThreads + threadIdx.x % kWarpThreads;
        if (number >= filled && number < end) elements[u] = edges[number];
      }
      filled = end;
    }
    __device__ State state() const {
      return chunk_of_elements<Op, kRounds>(
          Op{}, [&](unsigned u) { return Op::prepared(elements[u]); },
          [&](unsigned u) { return u * kWarpThreads + threadIdx.x % kWarpThreads < filled; });
    }
  };

  /// Returns the number of all elements.
  static __device__ unsigned long long push_shards(NodeTree<Op>& tree, const CombineShardsArguments& all,
                                                   unsigned long long row) {
    CutChunk cut;
    unsigned long long begin = 0;
    for (unsigned rank = 0; rank < all.ranks; ++rank) {
      const auto n = static_cast<unsigned long long>(all.counts[rank * kCountStride]);
      if (n == 0) continue;
      const char* const block = static_cast<const char*>(all.blocks) + rank * all.block_bytes;
      const auto* const edges = reinterpret_cast<const Edge*>(block + all.edges_at) + row * 2 * kElements;
      const auto range = ShardRange<kElements>::of(begin, n);
      if (range.head > 0) cut.append(edges, range.head);
      if (cut.filled == kElements) push_cut(tree, cut);
      push_nodes(tree, reinterpret_cast<const State*>(block) + row * 2 * all.levels, all.levels, range);
      if (range.tail > 0) cut.append(edges + kElements, range.tail);
      begin += n;
    }
    if (cut.filled > 0) push_cut(tree, cut);
    return begin;
  }

  static __device__ void push_cut(NodeTree<Op>& tree, CutChunk& cut) {
    tree.push(cut.state(), 0);
    cut.filled = 0;
  }

  /// A lane loads the two nodes of its level.
  static __device__ void push_nodes(NodeTree<Op>& tree, const State* nodes, unsigned levels,
                                    const ShardRange<kElements>& range) {
    unsigned has[2] = {0, 0};
    for_each_node(range.first, range.end, 0,
                  [&](unsigned side, unsigned level, unsigned long long) { has[side] |= 1u << level; });
    const unsigned lane = threadIdx.x % kWarpThreads;
    State left = Op::absent(), right = Op::absent();
    if ((has[0] >> lane & 1) != 0) left = nodes[lane];
    if ((has[1] >> lane & 1) != 0) right = nodes[levels + lane];
    for (unsigned level = 0; level < levels; ++level)
      if ((has[0] >> level & 1) != 0) tree.push(shuffle_from(left, level), level);
    for (unsigned level = levels; level-- > 0;)
      if ((has[1] >> level & 1) != 0) tree.push(shuffle_from(right, level), level);
  }
};

}  // namespace hone
