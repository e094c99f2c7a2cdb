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
  using OutPack = typename Types::OutPack;
  using Weight = SoftmaxWeight<Types>;
  using Arguments = SoftmaxColumnsArguments<Acc>;
  using Tiling = ColumnTiling<Weight, kBlockThreads, kBlockThreads / kLanes, Types::kPack, kUnroll, RowStarts::aligned,
                              false>;
  using Chunk = ColumnChunk<Tiling, kBatchLevels>;
  using Element = typename Chunk::Element;
  static constexpr unsigned kPack = Types::kPack, kThreads = Tiling::kThreadsPerOutput;
  static constexpr unsigned kTileColumns = Tiling::kTileColumns;
  static constexpr unsigned kThreadSpans = 8;  ///< that a thread combines, in a row
  static constexpr long long kChunkRows = kChunkElements<In>;
  using Weights = Array<Weight, kPack>;
  static_assert(kThreads >= 2);

  using Tile = ColumnTile<Tiling>;

  // Tile and chunk are the caller's, so that the compiler keeps all of them in registers.
  const Arguments& all;
  const Tile& tile;
  Chunk& chunk;
  unsigned& folds;  ///< of threads until now, in the whole kernel: they take turns at two buffers
  unsigned part;
  long long slice, column, first, end;  ///< chunks

  static __device__ unsigned long long slice_tiles(const Arguments& all) {
    return (static_cast<unsigned long long>(all.inner) + kTileColumns - 1) / kTileColumns;
  }
  static __device__ ColumnsArguments shape_of(const Arguments& all) {
    const auto pitch = static_cast<unsigned long long>(all.in_pitch);
    const auto rows = static_cast<unsigned long long>(all.reduced);
    return {all.in, all.out, all.workspace, static_cast<unsigned long long>(all.outer), rows,
            static_cast<unsigned long long>(all.inner), pitch, rows * pitch, rows, slice_tiles(all), 1, all.chunks};
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
      Chunk chunk(static_cast<const In*>(all.in), tile);
      if constexpr (kLevels == 0) chunk.go_to(0, shape.reduced);
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
    const unsigned long long outputs = static_cast<unsigned long long>(all.outer * all.inner);
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

  /// Calls act(1, output, sum of the weights of the span) for each column, by one thread each, where they are
  /// leaf(element, e).
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
  template <class Act>
  __device__ void find_sums_relative_to(const Weights& weights, const Act& act) {
    find_sums([&](Element x, unsigned e) { return weights.values[e].leaf(x); }, act);
  }

  /// Calls act() for sums of weights relative to 1, and act(0, output, heaviest element of the span) in the same way.
  template <class Act>
  __device__ void find_both(const Act& act) {
    const Acc factor = all.scale.factor;
    const Powers<Acc> powers(factor);
    Acc most[kPack];
#pragma unroll
    for (Acc& each : most) each = lowest<Acc>();
    find_sums(
        [&](Element x, unsigned e) {
          most[e] = larger<false>(most[e], HeaviestElement<Types>{factor}.leaf(x));
          return powers(convert<Acc>(x));
        },
        act);
    chunk.template fold_threads<CanonicalMax<Acc>, 2>(most, folds++ % 2,
                                                      [&](unsigned output, Acc heaviest) { act(0, output, heaviest); });
  }

  /// Calls act(which, output, tree of the partials of all spans) in the same way. Thread y takes those behind the others of
  /// the threads whose numbers are smaller with their bits reversed: folds between threads are in halves.
  template <class Monoid, class Act>
  __device__ void combine_spans(unsigned which, Acc absent, const Act& act) {
    const unsigned y = threadIdx.x / kLanes, from = __brev(y) / (0x80000000u / kThreads * 2) * kThreadSpans;
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

  /// Returns what of_columns(which) has of this thread's columns, after a barrier.
  __device__ Array<Acc, kPack> own(unsigned which) const {
    __syncthreads();
    const unsigned at = chunk.column() < static_cast<int>(tile.width) ? static_cast<unsigned>(chunk.column()) : 0;
    return Array<Acc, kPack>([&](unsigned e) { return of_columns(which)[at + e]; });
  }

  /// Those of columns with the heaviest elements in of_columns(0).
  __device__ Weights weights() const {
    const Array<Acc, kPack> heaviest = own(0);
    return Weights([&](unsigned e) { return Weight(heaviest.values[e], all.scale.factor); });
  }

  /// True if find_both() found the sums of all columns of the tile; a barrier.
  static __device__ bool are_guessed(const Weights& weights) {
    bool is_wrong = false;
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e) is_wrong = is_wrong || !weights.values[e].is_guessed();
    return !__syncthreads_or(is_wrong);
  }

  /// Writes the results of the span; of_columns(1) has the sums.
  __device__ void write(const Weights& weights) {
    const Array<Acc, kPack> sums = own(1);
    const Array<typename Weight::Norm, kPack> norms([&](unsigned e) { return weights.values[e].norm(sums.values[e]); });
    auto* const out = static_cast<typename Types::Out*>(all.out) + (slice * all.reduced * all.out_pitch + column);
    for_chunks([&](long long) {
      chunk.for_packs([&](long long row, const typename Types::InPack& pack) {
        const OutPack results =
            OutPack::of([&](unsigned e) { return weights.values[e].result(pack[e], norms.values[e]); });
        store_streaming(reinterpret_cast<OutPack*>(out + (row * all.out_pitch + chunk.column())), results);
      });
    });
  }
};

}  // namespace hone
