// Reduces the part of a sequence that one rank has to nodes of the canonical tree of the whole sequence, wherever the
// part begins and ends (shard_nodes.cuh); combine_shards.cuh makes the root of those of all ranks.
//
// A warp reduces an aligned run of 2^run_levels batches of kUnroll chunks to a partial, or, where an end of the shard
// cuts the run, to the largest nodes that are left of it. A second kernel, of a block a row, makes the nodes above. So
// the result depends on the elements alone. Elements of cut chunks are copied; kEdgesAreLeaves: as what the operation
// makes of them.
//
// An operation with an origin (softmax) is relative to the largest element of its row.
//
// Constraints: kBlockThreads is a power of two; kUnroll · kVectorBytes / sizeof(In) ≤ 32; TwoArrays have one row;
// all.levels is above the level of any node.
#pragma once

#include "canonical_chunks.cuh"
#include "canonical_logsumexp.cuh"
#include "canonical_moments.cuh"
#include "canonical_softmax_ops.cuh"
#include "combine.cuh"
#include "grid.cuh"
#include "shard_nodes.cuh"

namespace hone {

/// The operation on a row.
template <class Op>
__device__ Op op_of_row(const ShardArguments& all, unsigned long long row) {
  if constexpr (requires(typename Op::Acc x) { Op(x, x); }) {
    using Acc = typename Op::Acc;
    const Acc origin = convert<Acc>(static_cast<const typename Op::In*>(all.origins)[row]);
    const auto factor = static_cast<Acc>(all.factor);
    return Op(heaviest_of_origin(origin, factor), factor);
  } else {
    return Op{};
  }
}

template <class Op, template <class, unsigned> class Arrays, bool kEdgesAreLeaves, unsigned kBlockThreads,
          unsigned kVectorBytes, unsigned kUnroll>
struct CanonicalShard {
  using In = typename Op::In;
  using State = typename Op::State;
  using Edge = typename Select<kEdgesAreLeaves, State, In>::type;
  using Source = Arrays<In, kVectorBytes / sizeof(In)>;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads, kElements = kChunkElements<In>;
  static constexpr unsigned kBatchLevel = kUnroll == 1 ? 0 : kUnroll == 2 ? 1 : kUnroll == 4 ? 2 : 3;
  using Range = ShardRange<kElements>;

  static __device__ void publish(const ShardArguments& all) {
    pdl_release_then_wait();
    const Range range = Range::of(elements_before(all.counts, all.rank), all.columns);
    const unsigned level = kBatchLevel + all.run_levels;
    const unsigned long long first_run = range.first >> level, before = runs_before(range, level);
    const unsigned long long warps = kWarps;
    for (auto number = blockIdx.x * warps + threadIdx.x / kWarpThreads; number < all.rows * all.runs;
         number += gridDim.x * warps) {
      const auto row = number / all.runs, in_row = number - row * all.runs, run = first_run + in_row;
      const Op op = op_of_row<Op>(all, row);
      const Source source = Source::from(all.in).behind(row * all.pitch);
      if (in_row == 0) copy_edges(all, op, source, range, row);
      const auto begin = run << level > range.first ? run << level : range.first;
      const auto end = (run + 1) << level < range.end ? (run + 1) << level : range.end;
      const unsigned long long n = (range.end - range.first) * kElements;
      const CanonicalChunks<Op, Source, kUnroll> batches(source.behind(range.head), n, op);
      const CanonicalChunks<Op, Source, 1> singles(source.behind(range.head), n, op);
      for_each_node(begin, end, 0, [&](unsigned side, unsigned node_level, unsigned long long node) {
        const unsigned long long chunk = (node << node_level) - range.first, count = 1ull << node_level;
        const State state = kUnroll > 1 && node_level >= kBatchLevel ? batches.of_run(chunk, count)
                                                                     : singles.of_run(chunk, count);
        if (threadIdx.x % kWarpThreads != 0) return;
        if (node_level == level) partials_of(all, row)[run - before] = state;
        else node_at(all, row, side, node_level) = state;
      });
    }
  }

  /// The second kernel, if there may be whole runs: combines them level by level, in place.
  static __device__ void finish(const ShardArguments& all) {
    pdl_release_then_wait();
    const Range range = Range::of(elements_before(all.counts, all.rank), all.columns);
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      State* const partials = partials_of(all, row);
      unsigned level = kBatchLevel + all.run_levels;
      auto first = runs_before(range, level), end = range.end >> level;
      for (; first < end; first /= 2, end /= 2, ++level) {
        const auto skipped = static_cast<unsigned>(first & 1), count = static_cast<unsigned>(end - first);
        const unsigned pairs = (count - skipped) / 2;
        if (threadIdx.x == 0 && skipped != 0) node_at(all, row, 0, level) = partials[0];
        if (threadIdx.x == 0 && (count - skipped) % 2 != 0) node_at(all, row, 1, level) = partials[count - 1];
        first += skipped;
        for (unsigned begin = 0; begin < pairs; begin += kBlockThreads) {
          const unsigned pair = begin + threadIdx.x;
          State state;
          if (pair < pairs) state = Op::combine(partials[skipped + 2 * pair], partials[skipped + 2 * pair + 1]);
          __syncthreads();
          if (pair < pairs) partials[pair] = state;
          __syncthreads();
        }
      }
    }
  }

 private:
  /// The number of the first whole run.
  static __device__ unsigned long long runs_before(const Range& range, unsigned level) {
    return (range.first + (1ull << level) - 1) >> level;
  }
  static __device__ State* partials_of(const ShardArguments& all, unsigned long long row) {
    return partials_in<State>(all.workspace) + row * all.runs;
  }
  static __device__ State& node_at(const ShardArguments& all, unsigned long long row, unsigned side, unsigned level) {
    return static_cast<State*>(all.block)[(2 * row + side) * all.levels + level];
  }

  static __device__ void copy_edges(const ShardArguments& all, const Op& op, const Source& source, const Range& range,
                                    unsigned long long row) {
    Edge* const edges = reinterpret_cast<Edge*>(static_cast<char*>(all.block) + all.edges_at) + row * 2 * kElements;
    const auto edge = [&](unsigned long long i) -> Edge {
      if constexpr (kEdgesAreLeaves) return op.leaf(Op::prepared(source.element(i)));
      else return source.element(i);
    };
    const unsigned long long tail_at = all.columns - range.tail;
    for (unsigned i = threadIdx.x % kWarpThreads; i < range.head; i += kWarpThreads) edges[range.head_at + i] = edge(i);
    for (unsigned i = threadIdx.x % kWarpThreads; i < range.tail; i += kWarpThreads)
      edges[kElements + i] = edge(tail_at + i);
  }
};

}  // namespace hone
