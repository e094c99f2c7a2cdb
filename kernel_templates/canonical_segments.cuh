// Segments of an array in the canonical tree: a warp or a block per segment, whose chunks are counted from its
// beginning and read by aligned packs wherever that is.
//
// Constraints: kBlockThreads is a power of two; kChunks · 16 / sizeof(In) ≤ 32.
#pragma once

#include "canonical_block.cuh"
#include "canonical_chunks.cuh"
#include "canonical_logsumexp.cuh"
#include "canonical_moments.cuh"
#include "segments.cuh"

namespace hone {

/// A warp has kChunks chunks in flight.
template <class Op, class Arrays, unsigned kBlockThreads, unsigned kChunks>
struct CanonicalSegments {
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Block = CanonicalBlock<Op, kBlockThreads>;
  using Chunks = CanonicalChunks<Op, OneArray<typename Op::In, kPackBytes / sizeof(typename Op::In)>, kChunks>;

  template <unsigned kGroupThreads>
  static __device__ void reduce(const SegmentsArguments& arguments) {
    static_assert(kGroupThreads == kWarpThreads || kGroupThreads == kBlockThreads);
    constexpr unsigned kGroups = kBlockThreads / kGroupThreads;
    Combine<CanonicalCombine<Op>, kBlockThreads> combine;
    const Arrays arrays{arguments};
    const Index stride = static_cast<Index>(gridDim.x) * kGroups;
    for (Index segment = static_cast<Index>(blockIdx.x) * kGroups + threadIdx.x / kGroupThreads; segment < arrays.count;
         segment += stride) {
      const Index begin = arrays.offset(segment), n = arrays.offset(segment + 1) - begin;
      const Chunks chunks({arrays.in + begin}, n);
      bool is_first = threadIdx.x % kWarpThreads == 0;
      State state;
      if constexpr (kGroupThreads == kWarpThreads) {
        state = chunks.whole();
      } else {
        is_first = of_block(combine, chunks, state);
      }
      if (is_first) arrays.write(segment, n, state);
      if constexpr (kGroupThreads > kWarpThreads) __syncthreads();
    }
  }

 private:
  /// True in the thread that gets the tree.
  template <class Combine_>
  static __device__ bool of_block(Combine_& combine, const Chunks& chunks, State& state) {
    Index run = kChunks;
    while (chunks.count() > run * (Block::kWarps * Block::kRounds)) run *= 2;
    const Index span = run * Block::kWarps;
    const unsigned rounds = chunks.count() <= run ? 0 : static_cast<unsigned>((chunks.count() + span - 1) / span);
    return Block::combine_rounds(combine, state, rounds, [&](unsigned round) {
      return chunks.of_run(round * span + Block::warp() * run, run);
    });
  }
};

}  // namespace hone
