// Reduces each row of a matrix to one value in the canonical tree: a row has the same bits for every policy, number of
// rows, pitch and alignment (batch invariance).
//
// Two kernels, by the length of a row:
//
//   CanonicalRowLanes   kLanes neighbouring lanes per row of at most kLanes · kUnroll packs, and at most a chunk. A
//                       thread loads its packs of kRows rows before it combines any. A fold in halves is the same from
//                       any power of two on that is not below the length of the row.
//   CanonicalRowBlocks  a warp or a block per row, or any number of blocks whose partials a second kernel combines. A
//                       warp has kUnroll chunks in flight, and reads rows that begin anywhere by aligned packs.
//
// Constraints: kBlockThreads is a power of two, a multiple of a warp; the rows of CanonicalRowLanes begin at multiples
// of kPack elements; all.parts is the number of spans of a row: at most Block::kRounds for reduce_by_block(), and
// Block::kMostPartials for publish().
#pragma once

#include "axis_arguments.h"
#include "canonical_block.cuh"
#include "canonical_chunks.cuh"
#include "canonical_exponentials.cuh"
#include "canonical_moments.cuh"

namespace hone {

/// Row r has its kValues results at out[r · kValues].
template <class Op, class Out, unsigned kValues>
__device__ void write_row(typename Op::State state, const RowsArguments& all, unsigned long long row) {
  Op::write(state, static_cast<typename Op::Index>(all.columns), static_cast<Out*>(all.out) + row * kValues);
}

template <class Op, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows, unsigned kPack,
          class Out, unsigned kValues>
struct CanonicalRowLanes {
  using In = typename Op::In;
  using State = typename Op::State;
  using ElementPack = Pack<In, kPack>;
  static constexpr unsigned kGroups = kBlockThreads / kLanes;
  static constexpr unsigned kTileRows = kGroups * kRows;
  static constexpr unsigned kMostColumns = kLanes * kUnroll * kPack;
  static_assert(kLanes <= kWarpThreads && kMostColumns <= kChunkElements<In>);

  static __device__ void reduce(const RowsArguments& all) {
    pdl_release_then_wait();
    const unsigned long long rows = all.rows, tile_rows = kTileRows;
    const auto columns = static_cast<unsigned>(all.columns);
    for (auto tile = blockIdx.x * tile_rows; tile < rows; tile += gridDim.x * tile_rows) {
      const unsigned long long first = tile + threadIdx.x / kLanes;
      ElementPack packs[kRows][kUnroll];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r)
        load(packs[r], static_cast<const In*>(all.in) + (first + r * kGroups) * all.pitch,
             first + r * kGroups < rows ? columns : 0);
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        const State state = of_row(packs[r], columns);
        const auto row = first + r * kGroups;
        if (threadIdx.x % kLanes == 0 && row < rows) write_row<Op, Out, kValues>(state, all, row);
      }
    }
  }

 private:
  /// The number of the first element of a lane's pack u.
  static __device__ unsigned first_of(unsigned u) { return (u * kLanes + threadIdx.x % kLanes) * kPack; }

  /// Loads nothing beyond the row; what is not there is anything.
  static __device__ void load(ElementPack (&packs)[kUnroll], const In* row, unsigned columns) {
    const unsigned whole = columns / kPack * kPack;
    ElementPack last = ElementPack::filled(In{});
    if (kPack > 1 && whole < columns && whole / kPack % kLanes == threadIdx.x % kLanes) {
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        if (whole + e < columns) last.set(e, row[whole + e]);
    }
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u)
      packs[u] = first_of(u) < whole ? *reinterpret_cast<const ElementPack*>(row + first_of(u)) : last;
  }

  static __device__ State of_row(const ElementPack (&packs)[kUnroll], unsigned columns) {
    decltype(Op::prepared(packs[0])) prepared[kUnroll];
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) prepared[u] = Op::prepared(packs[u]);
    if constexpr (kIsByChunk<Op>) {
      return chunk_of_lanes<Op, kUnroll, kPack, kLanes, false>(
          [&](unsigned u, unsigned e) { return Op::present(prepared[u][e], first_of(u) + e < columns); },
          [&](unsigned u, unsigned e) { return first_of(u) + e; }, [&] { return prepared[0][0]; });
    } else {
      State values[kPack];
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        values[e] = fold_leaves<Op, kUnroll>([&](unsigned u) {
          return first_of(u) + e < columns ? Op::leaf(prepared[u][e]) : Op::absent();
        });
      return fold_lanes<Op, kPack, 1, kLanes>(values);
    }
  }
};

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
    for (auto row = blockIdx.x * warps + Block::warp(); row < all.rows; row += gridDim.x * warps) {
      const State state = of_row(all, row).whole();
      if (threadIdx.x % kWarpThreads == 0) write_row<Op, Out, kValues>(state, all, row);
    }
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
