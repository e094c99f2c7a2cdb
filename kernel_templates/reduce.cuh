// Reduces n elements to one.
//
// A grid-stride loop over tiles: each thread loads kUnroll packs of kVectorBytes before it combines any of them, so
// that kBlockThreads × kUnroll × kVectorBytes bytes per block are in flight. Elements before the first aligned pack
// and after the last whole one (fewer than two packs together) go to single threads of block 0, so any
// element-aligned pointer runs at the full vector width. The partial results of threads meet in block_reduce(), those
// of blocks in one of three ways:
//
//   one_block      there is only one; for small n
//   last_block     each block publishes its partial and takes a ticket; the last one combines them all
//   second_kernel  each block publishes its partial; a second launch of one block combines them
//
// In all three the order of combination follows from n, the grid and the pointer's alignment alone.
//
// Constraints: kBlockThreads is a power of two, at least a warp and at least two packs' elements; kVectorBytes is a
// power of two, at least sizeof(In), at most 16; kUnroll is a power of two; Index holds n plus one grid-wide stride.
#pragma once

#include "block_reduce.cuh"
#include "pack.cuh"
#include "reduce_ops.cuh"

namespace hone {

/// A workspace starts with this many bytes that are zero between launches; partial results follow.
inline constexpr unsigned kWorkspaceHeaderBytes = 128;

template <class Op, class In, class Acc, class Index, unsigned kBlockThreads, unsigned kVectorBytes, unsigned kUnroll,
          Tail kTail>
struct Reduce {
  using Partial = Acc;

  static constexpr unsigned kPackElements = kVectorBytes / sizeof(In);
  static constexpr unsigned kTilePacks = kBlockThreads * kUnroll;
  static constexpr unsigned kTileElements = kTilePacks * kPackElements;
  static_assert(kVectorBytes % sizeof(In) == 0 && kVectorBytes <= 16);
  static_assert((kUnroll & (kUnroll - 1)) == 0);
  static_assert(kBlockThreads >= 2 * kPackElements, "the ends of the array are handled by one thread per element");

  using InPack = Pack<In, kPackElements>;

  /// The elements of one pack as accumulators: independent chains, one per position.
  struct Lanes {
    Acc of_element[kPackElements];

    static __device__ Lanes identity() {
      Lanes lanes;
#pragma unroll
      for (Acc& acc : lanes.of_element) acc = Op::identity();
      return lanes;
    }

    static __device__ Lanes of(const InPack& pack) {
      Lanes lanes;
#pragma unroll
      for (unsigned i = 0; i < kPackElements; ++i) lanes.of_element[i] = static_cast<Acc>(pack.elements[i]);
      return lanes;
    }

    __device__ void combine(const Lanes& other) {
#pragma unroll
      for (unsigned i = 0; i < kPackElements; ++i)
        of_element[i] = Op::combine(of_element[i], other.of_element[i]);
    }

    __device__ Acc combined() {
#pragma unroll
      for (unsigned half = kPackElements / 2; half > 0; half /= 2)
#pragma unroll
        for (unsigned i = 0; i < half; ++i) of_element[i] = Op::combine(of_element[i], of_element[i + half]);
      return of_element[0];
    }
  };

  /// What this thread contributes.
  static __device__ Acc thread_partial(const In* in, Index n) {
    const Index unaligned = elements_before_alignment<kVectorBytes>(in);
    const Index head = unaligned < n ? unaligned : n;
    const Index packs = (n - head) / kPackElements;
    const InPack* body = reinterpret_cast<const InPack*>(in + head);

    Lanes sum = Lanes::identity();
    const Index stride = static_cast<Index>(gridDim.x) * kTilePacks;
    Index first = static_cast<Index>(blockIdx.x) * kTilePacks + threadIdx.x;
    for (; first + (kUnroll - 1) * kBlockThreads < packs; first += stride) {
      InPack loaded[kUnroll];
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) loaded[u] = body[first + u * kBlockThreads];
      // Pairwise within the tile first: as many operations, but chains kUnroll times shorter, and so more accurate.
      Lanes tile[kUnroll];
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) tile[u] = Lanes::of(loaded[u]);
#pragma unroll
      for (unsigned half = kUnroll / 2; half > 0; half /= 2)
#pragma unroll
        for (unsigned u = 0; u < half; ++u) tile[u].combine(tile[u + half]);
      sum.combine(tile[0]);
    }
    if constexpr (kUnroll > 1) {  // the last tile may be cut short anywhere
      InPack loaded[kUnroll - 1];
#pragma unroll
      for (unsigned u = 0; u + 1 < kUnroll; ++u)
        if (first + u * kBlockThreads < packs) loaded[u] = body[first + u * kBlockThreads];
#pragma unroll
      for (unsigned u = 0; u + 1 < kUnroll; ++u)
        if (first + u * kBlockThreads < packs) sum.combine(Lanes::of(loaded[u]));
    }

    Acc acc = sum.combined();
    if (blockIdx.x == 0) acc = Op::combine(acc, ends_partial(in, n, head, head + packs * kPackElements));
    return acc;
  }

  /// The elements [0, head) and [tail, n), one per thread.
  static __device__ Acc ends_partial(const In* in, Index n, Index head, Index tail) {
    if (threadIdx.x < head) return static_cast<Acc>(in[threadIdx.x]);
    const Index position = tail + (threadIdx.x - head);
    return position < n ? static_cast<Acc>(in[position]) : Op::identity();
  }

  static __device__ Acc block_partial(const In* in, Index n) {
    return block_reduce<kTail, Op, kBlockThreads>(thread_partial(in, n));
  }

  static __device__ Acc* partials_of(void* workspace) {
    return reinterpret_cast<Acc*>(static_cast<char*>(workspace) + kWorkspaceHeaderBytes);
  }

  /// Combines `count` partials, in one block. They were written by other multiprocessors: read them through L2.
  static __device__ void combine_partials(const Acc* partials, unsigned count, Acc* out) {
    Acc acc = Op::identity();
    for (unsigned i = threadIdx.x; i < count; i += kBlockThreads) acc = Op::combine(acc, __ldcg(partials + i));
    acc = block_reduce<kTail, Op, kBlockThreads>(acc);
    if (threadIdx.x == 0) *out = acc;
  }

  static __device__ void one_block(const In* in, Index n, Acc* out) {
    const Acc acc = block_partial(in, n);
    if (threadIdx.x == 0) *out = acc;
  }

  static __device__ void publish_partials(const In* in, Index n, void* workspace) {
    const Acc acc = block_partial(in, n);
    if (threadIdx.x == 0) partials_of(workspace)[blockIdx.x] = acc;
  }

  static __device__ void last_block(const In* in, Index n, Acc* out, void* workspace) {
    __shared__ bool is_last;
    const Acc acc = block_partial(in, n);
    if (threadIdx.x == 0) {
      partials_of(workspace)[blockIdx.x] = acc;
      __threadfence();
      // atomicInc wraps to 0 after the last block: the ticket resets itself for the next launch.
      is_last = atomicInc(static_cast<unsigned*>(workspace), gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    combine_partials(partials_of(workspace), gridDim.x, out);
  }
};

}  // namespace hone
