// Reduces the middle extent of outer × reduced × inner, with outer = 1 the columns of a matrix, in the canonical tree:
// a column has the bits of an array of its elements, for every policy, number of columns, pitch and alignment.
//
// Tiles, packs, their alignment and folded rows are those of reduce_columns.cuh, but the folds of a row are a power of
// two. A block makes the chunks of its tile one after the other (ColumnChunk), and their tree by a binary counter for
// each output, in shared memory. With kSplitsRows several blocks share a tile: each makes a span of 2^run_levels
// chunks, and a second kernel the tree of the spans. With kCutsChunks it may also make a part of a chunk, every
// 2^cut_levels-th row: these are the last folds of a chunk, so its parts are leaves of the second kernel's tree.
//
// Constraints: those of reduce_columns.cuh, no shifted loads; kThreadsPerOutput · kUnroll and `folds` are at most a
// chunk; a span has at most 2^kLevels chunks; all.parts is at most kThreadSpans · the threads of an output of
// combine_spans().
#pragma once

#include "canonical_column_chunk.cuh"
#include "canonical_logsumexp.cuh"
#include "canonical_moments.cuh"
#include "grid.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads, unsigned kThreadsPerOutput, unsigned kPackElements, unsigned kUnroll,
          RowStarts kStarts, bool kFolds, unsigned kBatchLevels, unsigned kLevels, bool kSplitsRows, bool kCutsChunks,
          class Out, unsigned kValues>
struct CanonicalColumns {
  using Tiling = ColumnTiling<Op, kBlockThreads, kThreadsPerOutput, kPackElements, kUnroll, kStarts, kFolds>;
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Offset = typename Tiling::Offset;
  using Tile = ColumnTile<Tiling>;
  using Batches = ColumnBatches<Tiling, kBatchLevels>;
  using Chunk = ColumnChunk<Batches>;
  using Held = ColumnChunk<HeldBatch<Tiling>>;
  static constexpr bool kHolds = kIsByChunk<Op> && kBatchLevels == 0;
  static constexpr unsigned kTileColumns = Tiling::kTileColumns;

  static __device__ void reduce(const ColumnsArguments& all) {
    unsigned long long item = blockIdx.x;
    const unsigned long long items = tiles(all) * parts(all);
    Work work(all, {all, item});
    pdl_release_then_wait();
    if (item >= items) return;
    Chunk chunk(static_cast<const In*>(all.in), work.tile);
    chunk.go_to(work.row(), all.reduced);
    // Goes to the block's next chunk; false behind the last one.
    const auto go_on = [&] {
      if (++work.before >= work.most) {
        item += gridDim.x;
        if (item >= items) return false;
        work = Work(all, {all, item});
        chunk = Chunk(static_cast<const In*>(all.in), work.tile);
      }
      chunk.go_to(work.row(), all.reduced);
      return true;
    };
    if constexpr (kHolds) {
      Held held(chunk);
      held.load(chunk);
      for (bool is_left = true; is_left;) {  // no chunks are an empty one
        const Place place = work;
        is_left = go_on();
        State states[kPackElements];
        Op::of_chunk(held, states, [&] { if (is_left) held.load(chunk); });
        held.for_outputs(states, [&](unsigned output, State state) { place.add(all, output, state); });
        held.enter(chunk);
      }
    } else if constexpr (kIsByChunk<Op>) {
      do {
        State states[kPackElements];
        Op::of_chunk(chunk, states);
        chunk.for_outputs(states, [&](unsigned output, State state) { work.add(all, output, state); });
      } while (go_on());
    } else {
      using Fold = decltype(chunk.template fold_of_tile<State, 2>());
      typename Chunk::template Nodes<State> nodes;
      State values[kPackElements];
      Fold fold = chunk.template fold_of_tile<State, 2>();
      Place place = work;
      unsigned number = 0, chunks_before = 0;
      bool is_left = true, ends_chunk = false;
#pragma unroll 1
      while (true) {
        typename Chunk::Batch batch;  // of the next chunk, if the threads have yet to meet for the one before
        if (is_left) chunk.load(batch, number);
        if (ends_chunk)
          fold.template fold<Op>(values, chunks_before++ % 2,
                                 [&](unsigned output, State state) { place.add(all, output, state); });
        if (!is_left) break;
        chunk.template fold_batch<Op>(nodes, values, batch, number,
                                      [&](typename Chunk::Element x, bool is_there, unsigned, unsigned) {
                                        return is_there ? Op::leaf(x) : Op::absent();
                                      });
        ends_chunk = ++number >= chunk.batches();
        if (!ends_chunk) continue;
        fold = chunk.template fold_of_tile<State, 2>();
        place = work;
        number = 0;
        is_left = go_on();
      }
    }
  }

 private:
  static __device__ unsigned parts(const ColumnsArguments& all) { return kSplitsRows ? all.parts : 1; }
  static __device__ unsigned cut_levels(const ColumnsArguments& all) { return kCutsChunks ? all.cut_levels : 0; }
  static __device__ unsigned long long slice_tiles(const ColumnsArguments& all) { return kFolds ? 1 : all.slice_tiles; }
  static __device__ unsigned long long tiles(const ColumnsArguments& all) { return all.outer * slice_tiles(all); }

  struct Item {
    unsigned part;
    unsigned long long slice, column;

    __device__ Item(const ColumnsArguments& all, unsigned long long item)
        : part(parts(all) == 1 ? 0 : static_cast<unsigned>(item) / static_cast<unsigned>(tiles(all))) {
      const unsigned long long tile = item - part * tiles(all);
      slice = all.outer == 1 ? 0 : tile / slice_tiles(all);
      column = (tile - slice * slice_tiles(all)) * all.tile_columns;
    }
  };

  /// Where the State of a chunk belongs.
  struct Place {
    State* partials;            ///< of the part, or null
    unsigned long long output;  ///< the first of the tile
    Offset most;                ///< chunks of the part
    Offset before = 0;          ///< those before the current one

    /// Adds the State of the chunk to the tree of an output.
    __device__ void add(const ColumnsArguments& all, unsigned number, State state) const {
      if (!ColumnTree<Op, kLevels, kTileColumns>::push(number, state, static_cast<unsigned long long>(before),
                                                       before + 1 >= most))
        return;
      if (partials != nullptr) partials[(output + number) * parts(all)] = state;
      else Op::write(state, static_cast<Index>(all.reduced), static_cast<Out*>(all.out) + (output + number) * kValues);
    }
  };

  /// A tile, a part of its chunks, and the current one of these.
  struct Work : Place {
    Tile tile;
    Offset first;  ///< chunk

    __device__ Work(const ColumnsArguments& all, const Item& item)
        : Place{.partials = parts(all) == 1 ? nullptr : partials_in<State>(all.workspace) + item.part,
                .output = item.slice * all.inner + item.column},
          tile(all, item.slice, item.column, item.part, parts(all), first_row(all, item.part), cut_levels(all)) {
      const Offset rows = Chunk::rows_of(tile), chunks = (tile.rows + rows - 1) / rows;
      const Offset span = Offset(1) << all.run_levels;
      first = parts(all) == 1 ? 0 : (item.part >> cut_levels(all)) * span;
      this->most = parts(all) == 1 || chunks - first < span ? chunks - first : span;
    }

    /// The first row that a part of a chunk has.
    static __device__ unsigned first_row(const ColumnsArguments& all, unsigned part) {
      return kCutsChunks ? reversed_bits(part, cut_levels(all)) : 0;
    }
    /// The first row of the current chunk.
    __device__ Offset row() const { return (first + this->before) * Chunk::rows_of(tile); }
  };
};

/// How many spans of an output a thread of combine_spans() takes, in a row.
inline constexpr unsigned kThreadSpans = 8;

/// The second kernel: the tree of the spans of every output. Span p of output o is at [o · parts + p], so that threads
/// load what lies side by side. A block has kOutputs neighbouring outputs.
template <class Op, unsigned kBlockThreads, unsigned kOutputs, class Out, unsigned kValues>
__device__ void combine_spans(const PartsArguments& all) {
  using State = typename Op::State;
  constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static_assert(kOutputs <= kWarpThreads);
  pdl_release_then_wait();
  const unsigned thread = threadIdx.x / kOutputs, output = blockIdx.x * kOutputs + threadIdx.x % kOutputs;
  const State* const partials =
      partials_in<State>(const_cast<void*>(all.workspace)) + static_cast<unsigned long long>(output) * all.parts;
  State some[kThreadSpans];
#pragma unroll
  for (unsigned i = 0; i < kThreadSpans; ++i) {
    const unsigned part = thread * kThreadSpans + i;
    const bool is_there = output < all.outputs && part < all.parts;
    some[i] = is_there ? load_from_l2(partials + part) : Op::absent();
  }
  using Tree = CanonicalCombine<Op>;
  const State state = Tree::template in_all_lanes<kWarpThreads, kOutputs>(combine_tree<Op, kThreadSpans>(some));
  __shared__ State of_warp[kWarps][kOutputs];
  if (threadIdx.x % kWarpThreads < kOutputs) of_warp[threadIdx.x / kWarpThreads][threadIdx.x % kOutputs] = state;
  __syncthreads();
  if (thread > 0 || output >= all.outputs) return;
  State of_output[kWarps];
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) of_output[w] = of_warp[w][threadIdx.x];
  Op::write(combine_tree<Op, kWarps>(of_output), static_cast<typename Op::Index>(all.reduced),
            static_cast<Out*>(all.out) + static_cast<unsigned long long>(output) * kValues);
}

}  // namespace hone
