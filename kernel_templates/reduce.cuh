// Reduces n elements to one.
//
// A grid-stride loop over tiles: each thread loads kUnroll packs of kVectorBytes before it combines any of them, so
// that kBlockThreads × kUnroll × kVectorBytes bytes per block and array are in flight (and, of an operation that takes
// long, those of the next tile while this one is combined), and combines a tile in a tree before it touches what it has
// accumulated: one short chain per thread, and so an accurate one. Elements before the first aligned pack and after the
// last whole one (fewer than two packs together) go to single threads of block 0, so any element-aligned pointer runs
// at the full vector width. The results of threads meet in block_reduce(), those of blocks in one of four ways:
//
//   one_block      there is only one; for small n
//   cluster        all blocks are one thread-block cluster; its first block combines them
//   last_block     each block publishes its partial and takes a ticket; the last one combines them all
//   second_kernel  each block publishes its partial; a second launch of one block combines them
//
// In all of them the order of combination follows from n, the grid and the pointer's alignment alone.
//
// Constraints: kBlockThreads is a power of two, at least a warp and at least two packs' elements; kVectorBytes is a
// power of two, at least an element, at most 16; kUnroll is a power of two; Op::Index holds n plus one grid-wide
// stride.
#pragma once

#include "block_reduce.cuh"
#include "grid.cuh"
#include "pack.cuh"
#include "reduction.cuh"

namespace hone {

/// One array, in packs: `head` elements before the first aligned pack, then whole packs.
template <class In, unsigned kPackElements>
struct OneArray {
  using Element = In;
  using ElementPack = Pack<In, kPackElements>;

  const In* in;

  __device__ unsigned unaligned() const { return elements_before_alignment<sizeof(ElementPack)>(in); }
  template <class Index>
  __device__ Element element(Index i) const { return in[i]; }
  template <class Index>
  __device__ ElementPack pack(Index head, Index i) const { return reinterpret_cast<const ElementPack*>(in + head)[i]; }
};

/// Two arrays side by side, whose addresses differ by a multiple of the pack's size.
template <class In, unsigned kPackElements>
struct TwoArrays {
  using Element = Pair<In>;
  using ElementPack = PairPack<In, kPackElements>;

  const In* a;
  const In* b;

  __device__ unsigned unaligned() const { return elements_before_alignment<sizeof(In) * kPackElements>(a); }
  template <class Index>
  __device__ Element element(Index i) const { return {a[i], b[i]}; }
  template <class Index>
  __device__ ElementPack pack(Index head, Index i) const {
    using Loaded = Pack<In, kPackElements>;
    return {reinterpret_cast<const Loaded*>(a + head)[i], reinterpret_cast<const Loaded*>(b + head)[i]};
  }
};

/// Whether a tile that is cut short is taken as a whole: something stands in for the packs that are not there, the
/// first one or neutral().
template <class Op>
inline constexpr bool kPadsTail = Op::kIdempotent || Op::kHasNeutral;

/// Loads the packs first, first + stride, … as far as there are `packs`, and what stands in for the others.
template <class Op, class Source, class ElementPack, unsigned kPacks, class Index>
__device__ void load_tail(ElementPack (&tile)[kPacks], const Source& source, Index head, Index packs, Index first,
                          Index stride) {
#pragma unroll
  for (unsigned u = 0; u < kPacks; ++u) {
    const Index pack = first + u * stride;
    if constexpr (Op::kIdempotent) {
      if (first < packs) tile[u] = source.pack(head, pack < packs ? pack : first);
    } else {
      if (pack < packs) tile[u] = source.pack(head, pack);
      else if constexpr (Op::kHasNeutral) tile[u] = ElementPack::filled(Op::neutral());
    }
  }
}

/// Adds what load_tail() loaded.
template <class Op, class ElementPack, unsigned kPacks, class Index>
__device__ void accumulate_tail(typename Op::State& state, const ElementPack (&tile)[kPacks], Index head, Index packs,
                                Index first, Index stride) {
  constexpr Index kElements = ElementPack::kElements;
  if constexpr (kPadsTail<Op>) {
    if (first < packs) Op::accumulate(state, tile, head + first * kElements, stride * kElements);
  } else {
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const Index pack = first + u * stride;
      const ElementPack one[1] = {tile[u]};
      if (pack < packs) Op::accumulate(state, one, head + pack * kElements, Index(0));
    }
  }
}

template <class Op, template <class, unsigned> class Arrays, unsigned kBlockThreads, unsigned kVectorBytes,
          unsigned kUnroll>
struct Reduce {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;

  static constexpr unsigned kPackElements = kVectorBytes / sizeof(In);
  static constexpr unsigned kTilePacks = kBlockThreads * kUnroll;
  static_assert(kVectorBytes % sizeof(In) == 0 && kVectorBytes <= 16);
  static_assert((kUnroll & (kUnroll - 1)) == 0);
  static_assert(kBlockThreads >= 2 * kPackElements, "the ends of the array are handled by one thread per element");

  using Source = Arrays<In, kPackElements>;
  using ElementPack = typename Source::ElementPack;
  struct Tile {
    ElementPack packs[kUnroll];
  };

  /// What this thread contributes, where its block is number `block` of the `blocks` that share the array.
  static __device__ State thread_partial(const Source& source, Index n, unsigned block, unsigned blocks) {
    const Index unaligned = source.unaligned();
    const Index head = unaligned < n ? unaligned : n;
    const Index packs = (n - head) / kPackElements;

    State state = Op::identity();
    const Index stride = static_cast<Index>(blocks) * kTilePacks;
    const Index to_last_lane = kWarpThreads - 1 - threadIdx.x % kWarpThreads;  // the lanes of a warp go round together
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

  static __device__ State block_partial(const Source& source, Index n) {
    return block_reduce<Op, kBlockThreads>(thread_partial(source, n, blockIdx.x, gridDim.x));
  }

  /// Combines `count` partials, in one block.
  template <class... Out>
  static __device__ void combine_partials(const void* workspace, unsigned count, Index n, Out*... out) {
    const State* partials = partials_in<State>(const_cast<void*>(workspace));
    State state = Op::identity();
    for (unsigned i = threadIdx.x; i < count; i += kBlockThreads)
      state = Op::combine(state, load_from_l2(partials + i));
    state = block_reduce<Op, kBlockThreads>(state);
    if (threadIdx.x == 0) Op::write(state, n, out...);
  }

  template <class... Out>
  static __device__ void one_block(const Source& source, Index n, Out*... out) {
    pdl_release_then_wait();
    const State state = block_partial(source, n);
    if (threadIdx.x == 0) Op::write(state, n, out...);
  }

  static __device__ void publish_partials(const Source& source, Index n, void* workspace) {
    pdl_release_then_wait();
    const State state = block_partial(source, n);
    if (threadIdx.x == 0) partials_in<State>(workspace)[blockIdx.x] = state;
  }

  template <class... Out>
  static __device__ void finish(const void* workspace, unsigned count, Index n, Out*... out) {
    pdl_release_then_wait();
    combine_partials(workspace, count, n, out...);
  }

  template <class... Out>
  static __device__ void last_block(const Source& source, Index n, void* workspace, Out*... out) {
    __shared__ bool is_last;
    pdl_release_then_wait();
    const State state = block_partial(source, n);
    if (threadIdx.x == 0) {
      partials_in<State>(workspace)[blockIdx.x] = state;
      is_last = take_last_ticket(static_cast<unsigned*>(workspace), gridDim.x);
    }
    __syncthreads();
    if (is_last) combine_partials(workspace, gridDim.x, n, out...);
  }

#ifndef HONE_HOST_DEVICE
  template <unsigned kClusterBlocks, class... Out>
  static __device__ void cluster(const Source& source, Index n, Out*... out) {
    __shared__ State of_block[kClusterBlocks];
    arrive_at_cluster_barrier();
    pdl_release_then_wait();
    const State state = block_partial(source, n);
    wait_at_cluster_barrier();  // every block has started, so its shared memory is there
    const unsigned rank = rank_in_cluster();
    if (threadIdx.x == 0) store_in_block(&of_block[rank], 0, state);
    arrive_at_cluster_barrier();
    wait_at_cluster_barrier();
    if (rank != 0 || threadIdx.x >= kWarpThreads) return;
    const unsigned lane = threadIdx.x;
    const State all = warp_reduce<Op, kClusterBlocks>(lane < kClusterBlocks ? of_block[lane] : Op::identity());
    if (lane == 0) Op::write(all, n, out...);
  }
#endif
};

}  // namespace hone
