// Reduces n elements to one in the canonical tree: the same bits for every policy, grid, alignment and device.
//
// A warp reduces runs of 2^run_levels batches of kUnroll chunks to a value each; the warps of a block take neighbouring
// runs, together a span, and the spans go round the blocks (grid-stride). Values stay in shared memory for kRounds
// spans. Then the block combines those of each span into a partial, if there are more blocks, and the block with the
// last ticket, or a second kernel, makes the tree of the partials. A single block makes the tree of at most kRounds
// spans, and a cluster that of one span a block.
//
// Constraints: kBlockThreads is a power of two; kUnroll · kVectorBytes / sizeof(In) ≤ 32; arguments.partials is the
// number of spans, at most kMostPartials, or kRounds with Grid::none and one block, or the blocks of the cluster;
// Op::Index holds n plus one grid-wide stride.
#pragma once

#include "canonical_chunks.cuh"
#include "canonical_ops.cuh"
#include "combine.cuh"
#include "kernel.cuh"
#include "reduce.cuh"
#include "reduce_arguments.h"

namespace hone {

template <class Op, template <class, unsigned> class Arrays, class Outputs_, unsigned kBlockThreads,
          unsigned kVectorBytes, unsigned kUnroll>
struct CanonicalReduce {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Source = Arrays<In, kVectorBytes / sizeof(In)>;
  using Tree = CanonicalCombine<Op>;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static constexpr unsigned kTileBytes = kWarps * kUnroll * kChunkBytes;
  static constexpr unsigned kRounds = kWarpThreads;
  static constexpr unsigned kThreadPartials = 4;  ///< neighbouring ones, in one load if a State is a word
  static constexpr unsigned kMostPartials = kRounds * kBlockThreads * kThreadPartials;

  template <Grid kGrid, unsigned kClusterBlocks = 1>
  static __device__ void reduce(const ReduceArguments& arguments) {
    Combine<Tree, kBlockThreads, kClusterBlocks> combine;
    const CanonicalChunks<Op, Source, kUnroll> chunks(Source::from(arguments.in), static_cast<Index>(arguments.n));
    const Index run = Index(kUnroll) << arguments.run_levels;
    unsigned span = blockIdx.x, round = 0;
    for (; span < arguments.partials; span += gridDim.x) {
      if (kGrid != Grid::none && round == kRounds) {
        publish(arguments, span, round);
        __syncthreads();
        round = 0;
      }
      const State state = chunks.of_run((Index(span) * kWarps + warp()) * run, run);
      if (threadIdx.x % kWarpThreads == 0) values()[round * kWarps + warp()] = state;
      ++round;
    }
    if constexpr (kGrid == Grid::none) {
      finish_with(combine, value_of_thread(round), arguments);
    } else {
      publish(arguments, span, round);
      if constexpr (kGrid == Grid::publish) return;
      __syncthreads();
      if (is_last_block(arguments.workspace)) finish_with(combine, of_published(arguments), arguments);
    }
  }

  /// The second kernel, of one block.
  static __device__ void finish(const ReduceArguments& arguments) {
    Combine<Tree, kBlockThreads> combine;
    finish_with(combine, of_published(arguments), arguments);
  }

 private:
  static __device__ unsigned warp() { return threadIdx.x / kWarpThreads; }

  /// The values of runs: those of a block's spans, one after the other.
  static __device__ State* values() {
    __shared__ State of_run[kRounds * kWarps];
    return of_run;
  }

  /// Value number threadIdx.x of the spans of `rounds` rounds.
  static __device__ State value_of_thread(unsigned rounds) {
    __syncthreads();
    return threadIdx.x < rounds * kWarps ? values()[threadIdx.x] : Op::absent();
  }

  /// Publishes the spans of the last `rounds` rounds; `next` is the one that would follow.
  static __device__ void publish(const ReduceArguments& arguments, unsigned next, unsigned rounds) {
    const State state = Tree::template in_all_lanes<kWarps>(value_of_thread(rounds));
    const unsigned round = threadIdx.x / kWarps;
    if (threadIdx.x % kWarps == 0 && round < rounds)
      partials_in<State>(arguments.workspace)[next - (rounds - round) * gridDim.x] = state;
  }

  /// What the threads of the finishing block combine to the tree of all partials.
  static __device__ State of_published(const ReduceArguments& arguments) {
    const State* const partials = partials_in<State>(arguments.workspace);
    const unsigned count = arguments.partials;
    if (count <= kBlockThreads) return threadIdx.x < count ? load_from_l2(partials + threadIdx.x) : Op::absent();
    unsigned round = 0;
#pragma unroll 2
    for (unsigned first = threadIdx.x * kThreadPartials; first - threadIdx.x * kThreadPartials < count;
         first += kBlockThreads * kThreadPartials) {
      State some[kThreadPartials];
#pragma unroll
      for (unsigned i = 0; i < kThreadPartials; ++i)
        some[i] = first + i < count ? load_from_l2(partials + first + i) : Op::absent();
      const State state = Tree::template in_all_lanes<kWarpThreads>(combine_tree<Op, kThreadPartials>(some));
      if (threadIdx.x % kWarpThreads == 0) values()[round * kWarps + warp()] = state;
      ++round;
    }
    return value_of_thread(round);
  }

  template <class Combine_>
  static __device__ void finish_with(Combine_& combine, State state, const ReduceArguments& arguments) {
    if (combine.to_first(state))
      Outputs_::template write<Op>(state, static_cast<Index>(arguments.n), arguments.out);
  }
};

}  // namespace hone
