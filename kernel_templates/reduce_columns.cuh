// Reduces the middle extent of outer × reduced × inner; with outer = 1 the columns of a matrix.
//
// A block has a tile of neighbouring columns. kThreadsPerOutput threads share each group of kPackElements columns, with
// interleaved rows. A thread loads packs of kUnroll rows before it accumulates any and keeps a State per column of its
// packs, which are combined in shared memory; if no threads share a column, packs of outputs are stored straight from
// registers. With kSplitsRows several blocks (`parts`) share the rows of a tile, interleaved as well, and a second
// kernel (partials.cuh) combines the partials that they publish.
//
// Packs are aligned even if rows are not (RowStarts). In the few rows where they would reach outside of the array,
// single elements are loaded. With kFolds, `folds` contiguous rows of few columns are one long row, whose columns are
// folded in the end. kTiles changes no result.
//
// Constraints: kBlockThreads, kThreadsPerOutput and kUnroll are powers of two; with shifted_loads packs have 4 bytes or
// more, and kUnroll is a multiple of kPackElements; folds · inner <= kTileColumns; Op::Index holds `reduced` plus one
// tile of rows.
#pragma once

#include "pack_range.cuh"
#include "partials.cuh"
#include "thread_columns.cuh"

namespace hone {

/// How many tiles of kUnroll rows a thread has, at most: it decides how for_each_full_tile() loops over them.
enum class Tiles {
  two,  ///< there is no double buffering, whose registers would keep other warps from the SM
  few,  ///< the first iteration is peeled
  many,
};

template <class Op, unsigned kBlockThreads, unsigned kThreadsPerOutput, unsigned kPackElements, unsigned kUnroll,
          RowStarts kStarts, bool kFolds, Tiles kTiles, bool kSplitsRows, class Out, unsigned kValues>
struct ColumnReduce {
  using Tiling = ColumnTiling<Op, kBlockThreads, kThreadsPerOutput, kPackElements, kUnroll, kStarts, kFolds>;
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Offset = typename Tiling::Offset;
  using Tile = ColumnTile<Tiling>;
  using Columns = ThreadColumns<Tiling>;
  using Rows = ThreadRows<Tiling>;

  static constexpr unsigned kLanes = Tiling::kLanes, kTileColumns = Tiling::kTileColumns;
  static constexpr bool kWritesPacks =
      kThreadsPerOutput == 1 && kStarts != RowStarts::phase_matched && !kFolds && kValues == 1;
  static constexpr unsigned kThreadColumns = (kTileColumns + kBlockThreads - 1) / kBlockThreads;
  using ThreadStates = Array<State, kThreadColumns>;
  static constexpr unsigned kManyFolds = 32;  ///< from here on folds are combined in two steps
  static constexpr unsigned kFoldsLeft = 8;   ///< after the first step
  static constexpr unsigned kSmemBytes = kThreadsPerOutput * Tiling::kSlots * sizeof(State);

  static __device__ void reduce(const ColumnsArguments& all) {
    __shared__ State of_column[kThreadsPerOutput][Tiling::kSlots];
    const In* const in = static_cast<const In*>(all.in);
    Out* const out = static_cast<Out*>(all.out);
    const unsigned parts = kSplitsRows ? all.parts : 1;
    const unsigned long long slice_tiles = kFolds ? 1 : all.slice_tiles;
    const unsigned long long tiles = all.outer * slice_tiles;
    if (blockIdx.x >= tiles * parts) pdl_release_then_wait();  // blocks without a tile call it, too
    for (unsigned long long item = blockIdx.x; item < tiles * parts; item += gridDim.x) {
      // Neighbouring blocks differ in columns. 64-bit divisions take longer than a tile of few rows: avoided.
      const unsigned part = parts == 1 ? 0 : static_cast<unsigned>(item) / static_cast<unsigned>(tiles);
      const unsigned long long number = item - part * tiles;
      const unsigned long long slice = all.outer == 1 ? 0 : number / slice_tiles;
      const unsigned long long column = (number - slice * slice_tiles) * all.tile_columns;
      const Tile tile(all, slice, column, part, parts);
      pdl_release_then_wait();  // at the first tile; its position is already computed
      const Columns columns = columns_of(in, tile);
      if constexpr (kWritesPacks) {
        if (parts == 1 && tile.has_packs_only()) {
          columns.write(static_cast<Index>(all.reduced), tile, out + (slice * all.inner + column));
          continue;
        }
      }
      columns.stage(tile, of_column);
      __syncthreads();
      const ThreadStates combined = combine_row_lanes(in, tile, of_column);
      const unsigned long long output = slice * all.inner + column;
      if constexpr (kFolds) {
        State* const states = of_column[0];
        __syncthreads();
        for_thread_columns(tile, [&](unsigned i, unsigned c) { states[c] = combined.values[i]; });
        const unsigned folds = combine_folds(tile, states);
        Tiling::for_columns(tile.inner, [&](unsigned c) {
          finish(Op::of_states(&states[c], folds, tile.inner), all, tile, output + c);
        });
      } else {
        for_thread_columns(tile, [&](unsigned i, unsigned c) { finish(combined.values[i], all, tile, output + c); });
      }
      __syncthreads();
    }
  }

 private:
  /// Accumulates a thread's columns over its rows of packs.
  static __device__ Columns columns_of(const In* in, const Tile& tile) {
    const Offset row_lane = threadIdx.x / kLanes + static_cast<Offset>(tile.part) * kThreadsPerOutput;
    const int width = static_cast<int>(tile.width);
    const TileRows<Tiling> tile_rows(in + (tile.first + tile.row_of_packs * tile.pitch), tile);
    Offset row = tile.row_of_packs + tile_rows.first_of(row_lane);
    const In* from = in + (tile.first + row * tile.pitch);
    int column = static_cast<int>(threadIdx.x % kLanes * kPackElements);  // relative to the tile; may be negative
    if constexpr (Tiling::kPhaseMatched) {
      const unsigned shift = elements_before_alignment<sizeof(typename Tiling::ElementPack)>(from);
      if (shift != 0) column += static_cast<int>(shift) - static_cast<int>(kPackElements);
    }
    Columns columns(column, tile);
    if (column < width) {
      from += column;
      const Offset stride = tile_rows.stride();
      const auto are_there = [&](Offset first) { return tile_rows.are_there(first, tile.last_of_packs); };
      const auto left = [&](Offset first) { return at_most(tile.last_of_packs - first, 1u << 30); };
      row = for_each_full_tile<Op::kComputeBound && kTiles != Tiles::two, kTiles == Tiles::few, Rows>(
          row, stride,
          [&](Offset first) { return Op::kHasNeutral ? first < tile.last_of_packs : are_there(first); },
          [&](Rows& rows, Offset first) {
            if (!Op::kHasNeutral || are_there(first)) rows.load(from, tile.pitch, tile_rows);
            else rows.load(from, tile.pitch, tile_rows, left(first));
            from += stride * tile.pitch;
          },
          [&](const Rows& rows, Offset first) { columns.accumulate_packs(rows, first, tile_rows); });
      if constexpr (!Op::kHasNeutral) {
        // One tile, but with shifted loads and an even pitch, where none is full, all of them.
        for (; row < tile.last_of_packs; row += stride, from += stride * tile.pitch) {
          Rows rows;
          rows.load(from, tile.pitch, tile_rows, left(row));
          columns.accumulate_tail(rows, row, tile_rows, left(row));
        }
      }
    }
    return columns;
  }

  /// Calls act(i, column) for each column of the tile that a thread combines: the i-th is i · kBlockThreads behind the
  /// first.
  static __device__ void for_thread_columns(const Tile& tile, const auto& act) {
    unrolled<kThreadColumns>([&](unsigned i) {
      const unsigned c = threadIdx.x + i * kBlockThreads;
      if (c < tile.width) act(i, c);
    });
  }

  /// Combines the States of each column. Part 0 adds the rows that were not loaded in packs.
  static __device__ ThreadStates combine_row_lanes(const In* in, const Tile& tile,
                                                   State (&of_column)[kThreadsPerOutput][Tiling::kSlots]) {
    const SmemCombine<Op, kBlockThreads, kThreadsPerOutput, Tiling::kSlots> smem(of_column[0],
                                                                                 Tiling::slot(tile.width - 1) + 1);
    ThreadStates combined([](unsigned) { return Op::identity(); });
    for_thread_columns(tile, [&](unsigned i, unsigned c) {
      State state = smem.combined(Tiling::slot(c));
      for (Offset row = 0; tile.part == 0 && row < tile.rows; ++row) {
        if (row == tile.row_of_packs && tile.row_of_packs < tile.last_of_packs) row = tile.last_of_packs;
        const Offset offset = tile.first + row * tile.pitch + c;
        if (row >= tile.rows || offset >= tile.end) break;
        const Index fold = kFolds ? c / tile.inner : 0;
        state = Op::combine(state, Op::of(in[offset], static_cast<Index>(row) * tile.folds + fold));
      }
      combined.values[i] = state;
    });
    return combined;
  }

  /// The first step for many folds: combines them into kFoldsLeft, which lie first. Returns the folds that are left.
  static __device__ unsigned combine_folds(const Tile& tile, State* states) {
    __syncthreads();
    if (tile.folds < kManyFolds) return tile.folds;
    Tiling::for_columns(kFoldsLeft * tile.inner, [&](unsigned c) {
      const unsigned count = (tile.folds - c / tile.inner + kFoldsLeft - 1) / kFoldsLeft;
      states[c] = Op::of_states(&states[c], count, kFoldsLeft * tile.inner);
    });
    __syncthreads();
    return kFoldsLeft;
  }

  /// Writes or publishes the State of an output.
  static __device__ void finish(const State& state, const ColumnsArguments& all, const Tile& tile,
                                unsigned long long output) {
    if (tile.parts != 1) partials_in<State>(all.workspace)[tile.part * all.outer * all.inner + output] = state;
    else Op::write(state, static_cast<Index>(all.reduced), static_cast<Out*>(all.out) + output * kValues);
  }
};

}  // namespace hone
