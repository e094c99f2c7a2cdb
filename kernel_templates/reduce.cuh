// Reduces n elements to one.
//
// A grid-stride loop over tiles. Each thread issues kUnroll vectorized loads of kVectorBytes before it combines any of
// them, so kBlockThreads × kUnroll × kVectorBytes bytes per block and array are in flight; a compute-bound operation
// loads the next tile meanwhile (double buffering). A tile is combined in a tree before it is added to the accumulator:
// one short chain per thread, hence an accurate one. Elements before the first aligned pack and after the last full one
// (fewer than two packs together) are handled by single threads of block 0, so a pointer of any alignment runs at the
// full vector width. block_reduce() combines the threads, as kTail says; the blocks' partials are combined in one of
// four ways:
//
//   one_block      there is a single block; for small n
//   cluster        all blocks form one cluster and send their partials to its first block through DSMEM
//   last_block     each block publishes its partial and takes a ticket; the block with the last ticket combines them
//   second_kernel  each block publishes its partial; a second launch of one block combines them
//
// The order of combination depends only on n, the grid and the pointer's alignment.
//
// Constraints: kBlockThreads is a power of two, at least a warp and at least two packs' elements; kVectorBytes is a
// power of two, at least an element, at most 32; kUnroll is a power of two; Op::Index holds n plus one grid-wide
// stride.
#pragma once

#include "block_reduce.cuh"
#include "grid.cuh"
#include "input_arrays.cuh"
#include "kernel.cuh"
#include "outputs.cuh"
#include "reduce_arguments.h"
#include "tile_loop.cuh"

namespace hone {

/// Outputs_ are the types of the results: Outputs<float, long long>.
template <class Op, template <class, unsigned> class Arrays, class Outputs_, unsigned kBlockThreads,
          unsigned kVectorBytes, unsigned kUnroll, Tail kTail = Tail::warp>
struct Reduce {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;

  static constexpr unsigned kPackElements = kVectorBytes / sizeof(In);
  static constexpr unsigned kTilePacks = kBlockThreads * kUnroll;
  static_assert(kVectorBytes % sizeof(In) == 0 && kVectorBytes <= 32);
  static_assert((kUnroll & (kUnroll - 1)) == 0);
  static_assert(kBlockThreads >= 2 * kPackElements, "the ends of the array are handled by one thread per element");

  using Source = Arrays<In, kPackElements>;
  using ElementPack = typename Source::ElementPack;
  struct Tile {
    ElementPack packs[kUnroll];
  };

  static __device__ Index size_of(const ReduceArguments& arguments) { return static_cast<Index>(arguments.n); }
  static __device__ void write(State state, const ReduceArguments& arguments) {
    Outputs_::template write<Op>(state, size_of(arguments), arguments.out);
  }

  /// The partial of this thread, in block `block` of the `blocks` that share the array.
  static __device__ State thread_partial(const Source& source, Index n, unsigned block, unsigned blocks) {
    const Index unaligned = source.unaligned();
    const Index head = unaligned < n ? unaligned : n;
    const Index packs = (n - head) / kPackElements;

    State state = Op::identity();
    const Index stride = static_cast<Index>(blocks) * kTilePacks;
    const Index to_last_lane = kWarpThreads - 1 - threadIdx.x % kWarpThreads;  // the loop is uniform in a warp
    const Index first = for_each_full_tile<Op::kComputeBound, false, Tile>(
        static_cast<Index>(block) * kTilePacks + threadIdx.x, stride,
        [&](Index pack) { return pack + to_last_lane + (kUnroll - 1) * kBlockThreads < packs; },
        [&](Tile& tile, Index pack) {
#pragma unroll
          for (unsigned u = 0; u < kUnroll; ++u) tile.packs[u] = source.pack(head, pack + u * kBlockThreads);
        },
        [&](const Tile& tile, Index pack) {
          Op::accumulate_with_warp(state, tile.packs, head + pack * kPackElements,
                                   Index(kBlockThreads * kPackElements));
        });
    ElementPack tile[kUnroll];
    load_tail<Op>(tile, source, head, packs, first, Index(kBlockThreads));
    accumulate_tail<Op>(state, tile, head, packs, first, Index(kBlockThreads));

    if (block == 0) {  // the elements [0, head) and those after the last pack, one per thread
      const Index i = threadIdx.x < head ? threadIdx.x : head + packs * kPackElements + (threadIdx.x - head);
      if (i < n) state = Op::combine(state, Op::of(source.element(i), i));
    }
    return state;
  }

  static __device__ State block_partial(const ReduceArguments& arguments) {
    return block_reduce<Op, kBlockThreads, kTail>(
        thread_partial(Source::from(arguments.in), size_of(arguments), blockIdx.x, gridDim.x));
  }

  /// Combines `count` partials, in one block.
  static __device__ void combine_partials(const ReduceArguments& arguments, unsigned count) {
    const State* partials = partials_in<State>(arguments.workspace);
    State state = Op::identity();
    for (unsigned i = threadIdx.x; i < count; i += kBlockThreads)
      state = Op::combine(state, load_from_l2(partials + i));
    state = block_reduce<Op, kBlockThreads, kTail>(state);
    if (threadIdx.x == 0) write(state, arguments);
  }

  static __device__ void one_block(const ReduceArguments& arguments) {
    pdl_release_then_wait();
    const State state = block_partial(arguments);
    if (threadIdx.x == 0) write(state, arguments);
  }

  static __device__ void publish_partials(const ReduceArguments& arguments) {
    pdl_release_then_wait();
    const State state = block_partial(arguments);
    if (threadIdx.x == 0) partials_in<State>(arguments.workspace)[blockIdx.x] = state;
  }

  static __device__ void finish(const ReduceArguments& arguments) {
    pdl_release_then_wait();
    combine_partials(arguments, arguments.partials);
  }

  static __device__ void last_block(const ReduceArguments& arguments) {
    __shared__ bool is_last;
    pdl_release_then_wait();
    const State state = block_partial(arguments);
    if (threadIdx.x == 0) {
      partials_in<State>(arguments.workspace)[blockIdx.x] = state;
      is_last = take_last_ticket(static_cast<unsigned*>(arguments.workspace), gridDim.x);
    }
    __syncthreads();
    if (is_last) combine_partials(arguments, gridDim.x);
  }

#ifndef HONE_HOST_DEVICE
  template <unsigned kClusterBlocks>
  static __device__ void cluster(const ReduceArguments& arguments) {
    __shared__ State of_block[kClusterBlocks];
    arrive_at_cluster_barrier();
    pdl_release_then_wait();
    const State state = block_partial(arguments);
    wait_at_cluster_barrier();  // every block has started: DSMEM may be accessed
    const unsigned rank = rank_in_cluster();
    if (threadIdx.x == 0) store_in_block(&of_block[rank], 0, state);
    arrive_at_cluster_barrier();
    wait_at_cluster_barrier();
    if (rank != 0 || threadIdx.x >= kWarpThreads) return;
    const unsigned lane = threadIdx.x;
    const State all = warp_reduce<Op, kClusterBlocks>(lane < kClusterBlocks ? of_block[lane] : Op::identity());
    if (lane == 0) write(all, arguments);
  }
#endif
};

}  // namespace hone
