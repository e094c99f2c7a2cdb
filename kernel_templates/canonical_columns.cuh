// Reduces the middle extent of outer × reduced × inner, with outer = 1 the columns of a matrix, in the canonical tree:
// a column has the bits of an array of its elements, for every policy, number of columns, pitch and alignment.
//
// Tiles, packs, their alignment and folded rows are those of reduce_columns.cuh, but the folds of a row are a power of
// two. A block makes the chunks of its tile one after the other (ColumnChunk), and their tree by a binary counter for
// each output, in shared memory. With kSplitsRows several blocks share a tile: each makes a span of 2^run_levels
// chunks, and a second kernel the tree of the spans.
//
// Constraints: those of reduce_columns.cuh, no shifted loads; kThreadsPerOutput · kUnroll and `folds` are at most a
// chunk; a span has at most 2^kLevels chunks; all.parts is at most kThreadSpans · the threads of an output of
// combine_spans().
#pragma once

#include "canonical_column_chunk.cuh"
#include "canonical_exponentials.cuh"
#include "canonical_moments.cuh"
#include "grid.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads, unsigned kThreadsPerOutput, unsigned kPackElements, unsigned kUnroll,
          RowStarts kStarts, bool kFolds, unsigned kBatchLevels, unsigned kLevels, bool kSplitsRows, class Out,
          unsigned kValues>
struct CanonicalColumns {
  using Tiling = ColumnTiling<Op, kBlockThreads, kThreadsPerOutput, kPackElements, kUnroll, kStarts, kFolds>;
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Offset = typename Tiling::Offset;
  using Tile = ColumnTile<Tiling>;
  using Chunk = ColumnChunk<Tiling, kBatchLevels>;
  static constexpr unsigned kTileColumns = Tiling::kTileColumns;

  static __device__ void reduce(const ColumnsArguments& all) {
    pdl_release_then_wait();
    const unsigned parts = kSplitsRows ? all.parts : 1;
    const unsigned long long slice_tiles = kFolds ? 1 : all.slice_tiles;
    const unsigned long long tiles = all.outer * slice_tiles;
    unsigned chunks_before = 0;
    for (unsigned long long item = blockIdx.x; item < tiles * parts; item += gridDim.x) {
      const unsigned part = parts == 1 ? 0 : static_cast<unsigned>(item) / static_cast<unsigned>(tiles);
      const unsigned long long number = item - part * tiles;
      const unsigned long long slice = all.outer == 1 ? 0 : number / slice_tiles;
      const unsigned long long column = (number - slice * slice_tiles) * kTileColumns;
      const Tile tile(all, slice, column, part, parts);
      const Offset chunk_rows = Chunk::rows_of(tile), chunks = (tile.rows + chunk_rows - 1) / chunk_rows;
      const Offset span = Offset(1) << all.run_levels, first = parts == 1 ? 0 : part * span;
      const Offset left = chunks - first;
      Chunk chunk(static_cast<const In*>(all.in), tile);
      Outputs outputs{all, parts == 1 ? nullptr : partials_in<State>(all.workspace) + part * all.outer * all.inner,
                      slice * all.inner + column, parts == 1 || left < span ? left : span};
      do {  // no chunks are an empty one
        chunk.go_to((first + outputs.chunks) * chunk_rows, all.reduced);
        if constexpr (kIsByChunk<Op>) {
          State states[kPackElements];
          Op::of_chunk(chunk, states);
          chunk.for_outputs(kFolds ? tile.inner : tile.width,
                            [&](unsigned output, unsigned e) { outputs.add(output, states[e]); });
        } else {
          State values[kPackElements];
          chunk.template fold_rows<Op>(values, [&](typename Chunk::Element x, bool is_there, unsigned, unsigned) {
            return is_there ? Op::leaf(x) : Op::absent();
          });
          chunk.template fold_threads<Op, 2>(values, chunks_before++ % 2,
                                             [&](unsigned output, State state) { outputs.add(output, state); });
        }
      } while (++outputs.chunks < outputs.most);
    }
  }

 private:
  /// The trees of the chunks of each output of a tile.
  struct Outputs {
    const ColumnsArguments& all;
    State* partials;           ///< of the part, or null
    unsigned long long first;  ///< output
    Offset most;               ///< chunks
    Offset chunks = 0;         ///< before the current one

    __device__ void add(unsigned output, State state) const {
      if (!ColumnTree<Op, kLevels, kTileColumns>::push(output, state, static_cast<unsigned long long>(chunks),
                                                       chunks + 1 >= most))
        return;
      if (partials != nullptr) partials[first + output] = state;
      else Op::write(state, static_cast<Index>(all.reduced), static_cast<Out*>(all.out) + (first + output) * kValues);
    }
  };
};

/// How many spans of an output a thread of combine_spans() takes, in a row.
inline constexpr unsigned kThreadSpans = 8;

/// The second kernel: the tree of the spans of every output. Span p of output o is at [p · outputs + o], so that
/// neighbouring threads load coalesced. A block has kOutputs neighbouring outputs.
template <class Op, unsigned kBlockThreads, unsigned kOutputs, class Out, unsigned kValues>
__device__ void combine_spans(const PartsArguments& all) {
  using State = typename Op::State;
  constexpr unsigned kThreads = kBlockThreads / kOutputs;  // of an output
  __shared__ State of_thread[kBlockThreads];
  pdl_release_then_wait();
  const unsigned thread = threadIdx.x / kOutputs, output = blockIdx.x * kOutputs + threadIdx.x % kOutputs;
  const State* const partials = partials_in<State>(const_cast<void*>(all.workspace)) + output;
  State some[kThreadSpans];
#pragma unroll
  for (unsigned i = 0; i < kThreadSpans; ++i) {
    const unsigned part = thread * kThreadSpans + i;
    const bool is_there = output < all.outputs && part < all.parts;
    some[i] = is_there ? load_from_l2(partials + static_cast<unsigned long long>(part) * all.outputs) : Op::absent();
  }
  of_thread[threadIdx.x] = combine_tree<Op, kThreadSpans>(some);
#pragma unroll 1
  for (unsigned s = 1; s < kThreads; s *= 2) {
    __syncthreads();
    if (thread % (2 * s) == 0)
      of_thread[threadIdx.x] = Op::combine(of_thread[threadIdx.x], of_thread[threadIdx.x + s * kOutputs]);
  }
  if (thread == 0 && output < all.outputs)
    Op::write(of_thread[threadIdx.x], static_cast<typename Op::Index>(all.reduced),
              static_cast<Out*>(all.out) + static_cast<unsigned long long>(output) * kValues);
}

}  // namespace hone
