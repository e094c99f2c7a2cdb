// SoftmaxColumnWork: what a block does with a tile of columns, for canonical_softmax_columns.cuh.
#pragma once

#include "axis_arguments.h"
#include "canonical_column_chunk.cuh"
#include "canonical_softmax_ops.cuh"
#include "grid.cuh"

namespace hone {

/// A block's tile and span of chunks.
template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kBatchLevels,
          unsigned kLevels>
struct SoftmaxColumnWork {
  using In = typename Types::In;
  using Acc = typename Types::Acc;
  using Out = typename Types::Out;
  using OutPack = typename Types::OutPack;
  using InPack = typename Types::InPack;
  using Weight = SoftmaxWeight<Types>;
  using Arguments = SoftmaxColumnsArguments<Acc>;
  using Tiling = ColumnTiling<Weight, kBlockThreads, kBlockThreads / kLanes, Types::kPack, kUnroll, RowStarts::aligned,
                              false>;
  using Batches = ColumnBatches<Tiling, kBatchLevels>;
  static constexpr bool kHolds = kLevels == 0 && kBatchLevels == 0;  ///< all that a tile has
  using Chunk = ColumnChunk<typename Select<kHolds, HeldBatch<Tiling>, Batches>::type>;
  using Element = typename Chunk::Element;
  static constexpr unsigned kPack = Types::kPack, kThreads = Tiling::kThreadsPerOutput;
  static constexpr unsigned kTileColumns = Tiling::kTileColumns;
  static constexpr unsigned kThreadSpans = 8;  ///< that a thread combines, in a row
  static constexpr long long kChunkRows = kChunkElements<In>;
  static_assert(kThreads >= 2);
  using Tile = ColumnTile<Tiling>;
  // Tile and chunk are the caller's, so that the compiler keeps all of them in registers.
  const Arguments& all;
  const Tile& tile;
  Chunk& chunk;
  unsigned& folds;  ///< of threads until now, in the whole kernel: they use two buffers alternately
  unsigned part;
  long long slice, column, first, end;  ///< chunks

  static __device__ unsigned long long slice_tiles(const Arguments& all) {
    return (static_cast<unsigned long long>(all.inner) + kTileColumns - 1) / kTileColumns;
  }
  static __device__ ColumnsArguments shape_of(const Arguments& all) {
    const auto pitch = static_cast<unsigned long long>(all.in_pitch);
    const auto rows = static_cast<unsigned long long>(all.reduced);
    return {.in = all.in,
            .out = all.out,
            .workspace = all.workspace,
            .outer = static_cast<unsigned long long>(all.outer),
            .reduced = rows,
            .inner = static_cast<unsigned long long>(all.inner),
            .pitch = pitch,
            .slice_pitch = rows * pitch,
            .rows = rows,
            .slice_tiles = slice_tiles(all),
            .tile_columns = kTileColumns,
            .folds = 1,
            .parts = all.chunks};
  }

  /// Calls act(work) for the tiles of each span in turn, in order or in reverse order.
  template <bool kReversed, class Act>
  static __device__ void for_items(const Arguments& all, const Act& act) {
    pdl_release_then_wait();
    const ColumnsArguments shape = shape_of(all);
    const unsigned long long tiles = shape.outer * shape.slice_tiles, items = tiles * all.chunks;
    const long long chunks = (all.reduced + kChunkRows - 1) / kChunkRows, span = 1ll << all.run_levels;
    unsigned folds = 0;
    for (unsigned long long i = blockIdx.x; i < items; i += gridDim.x) {
      const unsigned long long item = kReversed ? items - 1 - i : i;
      const auto part = static_cast<unsigned>(item / tiles);
      const unsigned long long number = item - part * tiles, slice = number / shape.slice_tiles;
      const unsigned long long column = (number - slice * shape.slice_tiles) * kTileColumns;
      const long long first = part * span, end = all.chunks > 1 && first + span < chunks ? first + span : chunks;
      const Tile tile(shape, slice, column, 0, 1);
      Batches batches(static_cast<const In*>(all.in), tile);
      if constexpr (kLevels == 0) batches.go_to(0, shape.reduced);
      Chunk chunk(batches);
      if constexpr (kHolds) chunk.load(batches);
      SoftmaxColumnWork work{all,   tile, chunk, folds, part, static_cast<long long>(slice),
                             static_cast<long long>(column), first, end};
      act(work);
    }
  }

  /// Two values for each column of the tile, in shared memory: its heaviest element (0), and its sum (1).
  static __device__ Acc* of_columns(unsigned which) {
    __shared__ Acc of_column[2][kTileColumns];
    return of_column[which];
  }
  /// The partial of a span of a column of the tile: its heaviest element (0), or its sum (1).
  __device__ Acc* partial(unsigned which, unsigned span, unsigned output) const {
    const auto outputs = static_cast<unsigned long long>(all.outer * all.inner);
    return partials_in<Acc>(all.workspace) + (which * all.chunks + span) * outputs +
           static_cast<unsigned long long>(slice * all.inner + column) + output;
  }

  /// Calls act() for each chunk of the span, with its number among them.
  template <class Act>
  __device__ void for_chunks(const Act& act) {
    for (long long c = first; c < end; ++c) {
      if constexpr (kLevels > 0) chunk.go_to(c * kChunkRows, static_cast<unsigned long long>(all.reduced));
      act(c - first);
    }
  }

  /// Calls act(1, output, sum of the span's weights leaf(element, e)) for each column, by one thread each.
  template <class Leaf, class Act>
  __device__ void find_sums(const Leaf& leaf, const Act& act) {
    for_chunks([&](long long number) {
      Acc values[kPack];
      chunk.template fold_rows<CanonicalSum<Acc>>(values, [&](Element x, bool is_there, unsigned e, unsigned) {
        return is_there ? leaf(x, e) : -Acc(0);
      });
      chunk.template fold_threads<CanonicalSum<Acc>, 2>(values, folds++ % 2, [&](unsigned output, Acc sum) {
        using Tree = ColumnTree<Weight, kLevels, kTileColumns>;
        const bool is_last = first + number + 1 >= end;
        if (Tree::push(output, sum, static_cast<unsigned long long>(number), is_last)) act(1, output, sum);
      });
    });
  }
  /// Calls act() for sums of weights relative to 1, and act(0, output, heaviest element of the span) in the same way.
  template <class Act>
  __device__ void find_both(const Act& act) {
    const Acc factor = all.scale.factor;
    const typename Types::Powers powers(factor);
    Array<Acc, kPack> most([](unsigned) { return lowest<Acc>(); });
    find_sums(
        [&](Element x, unsigned e) {
          most.values[e] = larger<false>(most.values[e], HeaviestElement<Types>{factor}.leaf(x));
          return powers(convert<Acc>(x));
        },
        act);
    chunk.template fold_threads<CanonicalMax<Acc>, 2>(most.values, folds++ % 2,
                                                      [&](unsigned output, Acc heaviest) { act(0, output, heaviest); });
  }

  /// Calls act(which, output, tree of the partials of all spans) in the same way. Thread y takes those behind those of
  /// the threads whose numbers are smaller with their bits reversed: folds between threads are in halves.
  template <class Monoid, class Act>
  __device__ void combine_spans(unsigned which, Acc absent, const Act& act) {
    const unsigned y = chunk.row(), from = __brev(y) / (0x80000000u / kThreads * 2) * kThreadSpans;
    const auto width = static_cast<int>(tile.width);
    Acc values[kPack];
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e) {
      Acc some[kThreadSpans];
#pragma unroll
      for (unsigned i = 0; i < kThreadSpans; ++i)
        some[i] = from + i < all.chunks && chunk.column() < width
                      ? load_from_l2(partial(which, from + i, static_cast<unsigned>(chunk.column()) + e))
                      : absent;
      values[e] = combine_tree<Monoid, kThreadSpans>(some);
    }
    chunk.template fold_threads<Monoid, 2>(values, folds++ % 2,
                                           [&](unsigned output, Acc of_column) { act(which, output, of_column); });
  }
  /// True if find_both() found the sums of all columns; of_columns(0) has the heaviest elements. Two barriers.
  __device__ bool are_guessed() const {
    __syncthreads();
    return !__syncthreads_or(!are_own_guessed());
  }

  template <class Act>
  __device__ void find_sums_again(const Act& act) {
    find_sums([&](Element x, unsigned e) { return Weight(own(0, e), all.scale.factor).leaf(x); }, act);
  }

  /// Writes the results of the span; of_columns() has heaviest elements and sums.
  __device__ void write() {
    __syncthreads();
    if (are_own_guessed()) {
      Array<Weight, kPack> weights([&](unsigned e) { return Weight::relative_to_1(own(0, e), all.scale.factor); });
      const Array<typename Weight::Norm, kPack> norms([&](unsigned e) { return weights.values[e].norm(own(1, e)); });
      const auto result = [&](In x, unsigned e) { return weights.values[e].result(x, norms.values[e]); };
      for_outputs([&](Out* out, const InPack& pack) {
        store_streaming(reinterpret_cast<OutPack*>(out), OutPack::of([&](unsigned e) { return result(pack[e], e); }));
      });
    } else {
      for_outputs([&](Out* out, const InPack& pack) {
#pragma unroll 1
        for (unsigned e = 0; e < kPack; ++e) {
          const Weight weight(own(0, e), all.scale.factor);
          out[e] = weight.result(pack[e], weight.norm(own(1, e)));
        }
      });
    }
  }

 private:
  /// Returns what of_columns(which) has of this thread's columns. Volatile: what few columns need takes no registers.
  __device__ Acc own(unsigned which, unsigned e) const {
    const unsigned at = chunk.column() < static_cast<int>(tile.width) ? static_cast<unsigned>(chunk.column()) : 0;
    return static_cast<const volatile Acc*>(of_columns(which))[at + e];
  }
  __device__ bool are_own_guessed() const {
    bool are_guessed = true;
#pragma unroll 1
    for (unsigned e = 0; e < kPack; ++e) are_guessed = are_guessed && Weight(own(0, e), all.scale.factor).is_guessed();
    return are_guessed;
  }

  /// Calls act(where its results are, pack) for all packs of the span.
  template <class Act>
  __device__ void for_outputs(const Act& act) {
    Out* const out = static_cast<Out*>(all.out) + (slice * all.reduced * all.out_pitch + column + chunk.column());
    for_chunks([&](long long) {
      chunk.for_packs([&](long long row, const InPack& pack) { act(out + row * all.out_pitch, pack); });
    });
  }
};

}  // namespace hone
