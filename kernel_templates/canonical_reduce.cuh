// Reduces n elements to one in the canonical tree: the same bits for every policy, grid, alignment and device.
//
// A warp reduces runs of 2^run_levels batches of kUnroll chunks to a value each; the warps of a block take neighbouring
// runs, together a span, and the spans go round the blocks (grid-stride). Values stay in shared memory for kRounds
// spans. Then the block combines those of each span into a partial, if there are more blocks, and the block with the
// last ticket, or a second kernel, makes the tree of the partials. A single block makes the tree of at most kRounds
// spans, and a cluster that of one span a block.
//
// Constraints: kBlockThreads is a power of two; kUnroll · kVectorBytes / sizeof(In) ≤ 32; arguments.partials is the
// number of spans, at most Block::kMostPartials, or kRounds with Grid::none and one block, or the cluster's blocks;
// Op::Index holds n plus one run of each warp.
#pragma once

#include "canonical_block.cuh"
#include "canonical_chunks.cuh"
#include "canonical_logsumexp.cuh"
#include "canonical_moments.cuh"
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
  using Block = CanonicalBlock<Op, kBlockThreads>;
  static constexpr unsigned kWarps = Block::kWarps;
  static constexpr unsigned kTileBytes = kWarps * kUnroll * kChunkBytes;

  template <Grid kGrid, unsigned kClusterBlocks = 1>
  static __device__ void reduce(const ReduceArguments& arguments) {
    constexpr bool kIsOneBlock = kGrid == Grid::none && kClusterBlocks == 1;
    const CanonicalChunks<Op, Source, kUnroll> chunks(Source::from(arguments.in), static_cast<Index>(arguments.n));
    const Index run = Index(kUnroll) << arguments.run_levels;
    const unsigned warp = uniform(Block::warp());
    const auto first_of = [&](unsigned span) { return (Index(span) * kWarps + warp) * run; };
    // A short array is a whole batch a warp: known before the wait, and made by the instructions behind it, not in
    // loops, which ptxas would put at the end. The sum of 1024 doubles took 1.37 µs, now 1.30 (H100, graph,
    // 2026-11-27).
    Index first = first_of(blockIdx.x);
    unsigned is_made = run == kUnroll && chunks.is_whole(first);
    settle(first);  // else computed again behind the wait
    settle(is_made);
    // Uniform, so that ptxas does not compute it behind the fold: the sum of 2^12 halves took 1.24 µs, now 1.19 (H200,
    // graph, 2026-11-30).
    const unsigned rounds = kIsOneBlock ? uniform(chunks.count() <= run ? 0 : arguments.partials) : 0;
    Combine<CanonicalCombine<Op>, kBlockThreads, kClusterBlocks, Grid::none, false, Tail::warp, Exchange::receipts>
        combine;
    State state;
    if (is_made != 0) state = chunks.of_whole(first);
    const auto of_span = [&](unsigned span) {
      if (is_made == 0) [[unlikely]] state = chunks.of_run(first_of(span), run);
      is_made = 0;
      return state;
    };
    bool is_first = false;
    if constexpr (kClusterBlocks > 1) {
      of_span(blockIdx.x);
      is_first = combine.to_first_of_lanes(state);
    } else if constexpr (kIsOneBlock) {
      is_first = Block::combine_rounds(combine, state, rounds, of_span);
    } else {
      State* const partials = partials_in<State>(arguments.workspace);
      const bool has_one_span = arguments.partials <= gridDim.x;
      unsigned round = 0;
      for (unsigned span = blockIdx.x; span < arguments.partials; span += gridDim.x) {
        of_span(span);
        if (has_one_span) {
          if (combine.to_first_of_lanes(state)) partials[span] = state;
          break;
        }
        Block::keep(state, round++);
        if (round == Block::kRounds || span + gridDim.x >= arguments.partials) {
          publish(partials, span, round);
          __syncthreads();
          round = 0;
        }
      }
      if constexpr (kGrid == Grid::publish) return;
      if (!is_last_block(arguments.workspace)) return;
      is_first = combine_partials(combine, state, arguments);
    }
    if (is_first) write(state, arguments);
  }

  /// The second kernel, of one block.
  static __device__ void finish(const ReduceArguments& arguments) {
    Combine<CanonicalCombine<Op>, kBlockThreads> combine;
    State state;
    if (combine_partials(combine, state, arguments)) write(state, arguments);
  }

 private:
  /// Publishes the spans of the last `rounds` rounds, of which `last` is the last one.
  static __device__ void publish(State* partials, unsigned last, unsigned rounds) {
    const State state = Block::tree_of_warps(Block::value_of_thread(rounds));
    const unsigned round = threadIdx.x / kWarps;
    if (threadIdx.x % kWarps == 0 && round < rounds) partials[last - (rounds - 1 - round) * gridDim.x] = state;
  }

  template <class Combine_>
  static __device__ bool combine_partials(Combine_& combine, State& state, const ReduceArguments& arguments) {
    return Block::combine_partials(combine, state, partials_in<State>(arguments.workspace), arguments.partials);
  }

  static __device__ void write(State state, const ReduceArguments& arguments) {
    Outputs_::template write<Op>(state, static_cast<Index>(arguments.n), arguments.out);
  }
};

}  // namespace hone
