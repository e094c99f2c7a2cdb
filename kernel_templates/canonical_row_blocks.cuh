// Reduces each row of a matrix to one value in the canonical tree: a row has the same bits for every policy, number of
// rows, pitch and alignment (batch invariance).
//
// A warp or a block takes a row, or any number of blocks whose partials a second kernel combines. A warp has kUnroll
// chunks in flight, and reads rows that begin anywhere by aligned packs. Shorter rows: canonical_row_lanes.cuh.
//
// Constraints: kBlockThreads is a power of two, a multiple of a warp; all.parts is the number of spans of a row: at most
// Block::kRounds for reduce_by_block(), and Block::kMostPartials for publish().
#pragma once

#include "canonical_block.cuh"
#include "canonical_chunks.cuh"
#include "canonical_logsumexp.cuh"
#include "canonical_moments.cuh"
#include "grid.cuh"
#include "row_results.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads, unsigned kUnroll, class Out, unsigned kValues>
struct CanonicalRowBlocks {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Block = CanonicalBlock<Op, kBlockThreads>;
  using BlockCombine = Combine<CanonicalCombine<Op>, kBlockThreads>;
  using Chunks = CanonicalChunks<Op, OneArray<In, 16 / sizeof(In)>, kUnroll>;
  static constexpr unsigned kWarps = Block::kWarps;
  static constexpr unsigned kTileBytes = kWarps * kUnroll * kChunkBytes;

  static __device__ void reduce_by_warp(const RowsArguments& all) {
    pdl_release_then_wait();
    const unsigned long long warps = kWarps;
    RowResults<Op, Out, kValues, kWarpThreads> results(all);
    for (auto row = blockIdx.x * warps + Block::warp(); row < all.rows; row += gridDim.x * warps)
      results.add(of_row(all, row).whole(), row, true);
    results.flush();
  }

  static __device__ void reduce_by_block(const RowsArguments& all) {
    BlockCombine combine;
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      const Chunks chunks = of_row(all, row);
      const unsigned rounds = chunks.count() <= run_of(all) ? 0 : all.parts;
      State state;
      if (Block::combine_rounds(combine, state, rounds, [&](unsigned span) { return of_span(chunks, all, span); }))
        write_row<Op, Out, kValues>(state, all, row);
      __syncthreads();
    }
  }

  /// Publishes the partial of span s of row r at r · all.parts + s.
  static __device__ void publish(const RowsArguments& all) {
    BlockCombine combine;
    for (unsigned long long number = blockIdx.x; number < all.rows * all.parts; number += gridDim.x) {
      const auto row = number / all.parts;
      State state = of_span(of_row(all, row), all, static_cast<unsigned>(number - row * all.parts));
      if (combine.to_first_of_lanes(state)) partials_in<State>(all.workspace)[number] = state;
      __syncthreads();
    }
  }

  /// The second kernel.
  static __device__ void finish(const RowsArguments& all) {
    BlockCombine combine;
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      State state;
      if (Block::combine_partials(combine, state, partials_in<State>(all.workspace) + row * all.parts, all.parts))
        write_row<Op, Out, kValues>(state, all, row);
      __syncthreads();
    }
  }

 private:
  static __device__ Chunks of_row(const RowsArguments& all, unsigned long long row) {
    return {{static_cast<const In*>(all.in) + row * all.pitch}, static_cast<Index>(all.columns)};
  }
  static __device__ Index run_of(const RowsArguments& all) { return Index(kUnroll) << all.run_levels; }
  static __device__ State of_span(const Chunks& chunks, const RowsArguments& all, unsigned span) {
    return chunks.of_run((Index(span) * kWarps + Block::warp()) * run_of(all), run_of(all));
  }
};

}  // namespace hone
