// Reduces the middle extent of outer × reduced × inner; with outer = 1 the columns of a matrix.
//
// A block has a tile of neighbouring columns: kThreadsPerOutput threads share each group of kPackElements columns and
// take the rows in turns. A thread loads packs of kUnroll rows before it combines any, carries a State per column of
// its packs, and the states of the threads that share a column meet in shared memory; where none share one, packs of
// outputs leave straight from registers. Where there are fewer tiles than blocks, several blocks take the rows of a
// tile in turns, so that they read on side by side, and a second kernel (partials.cuh) combines what they publish.
//
// Packs are aligned though rows may not be: a thread's rows are a multiple of kPackElements rows apart, so that its
// packs begin at the same columns in each of them, wherever those are. The outermost threads of a row then hold a few
// columns of the neighbouring tiles, which are dropped; such a tile is one pack narrower than its threads
// (RowStarts::phase_matched). Or a thread takes any rows, and puts each of its packs together from two
// (RowStarts::shifted_loads): twice as many loads, of which half find their line in L1, and some 15 instructions a
// pack. In the few rows where either would read beyond the array, elements are taken one by one.
//
// Few columns: where rows lie side by side, `folds` of them are one long row, and its columns are folded in the end
// (kFolds; the caller chooses folds · inner <= kTileColumns, or 1 where a pitch leaves gaps).
//
// Few rows: kFewTiles says that a thread has few tiles of kUnroll of them, of which the first is then code of its own
// (for_each_full_tile()). It changes no result.
//
// Constraints: kBlockThreads, kThreadsPerOutput and kUnroll are powers of two; with phase_matched kThreadsPerOutput is
// a multiple of kPackElements, and packs that are realigned are of 4 bytes or more; Op::Index holds `reduced` plus one
// tile of rows.
#pragma once

#include "pack.cuh"
#include "partials.cuh"
#include "reduction.cuh"
#include "smem_combine.cuh"
#include "streaming.cuh"

namespace hone {

/// What is reduced. `pitch` is the number of elements from the beginning of one row of `inner` to that of the next.
/// What follows from these comes along: kernels of short columns would compute it again wherever they need it, for want
/// of registers.
struct ColumnsShape {
  unsigned long long outer, reduced, inner, pitch;
  unsigned long long slice_pitch;  ///< reduced · pitch
  unsigned long long rows;         ///< ⌈reduced / folds⌉
  unsigned long long slice_tiles;  ///< 1 where rows are folded, else ⌈inner / kTileColumns⌉
  unsigned folds;
  unsigned parts;  ///< blocks that share the rows of a tile; of several, outer · tiles · parts fits 32 bits
};

/// Where the rows of a matrix begin, and what threads make of it.
enum class RowStarts {
  aligned,        ///< at multiples of a pack
  phase_matched,  ///< anywhere, but alike in each of a thread's rows
  shifted_loads,  ///< anywhere: packs are put together
};

template <class Op, unsigned kBlockThreads, unsigned kThreadsPerOutput, unsigned kPackElements, unsigned kUnroll,
          RowStarts kStarts, bool kFolds, bool kFewTiles, unsigned kValues>
struct ColumnReduce {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using ElementPack = Pack<In, kPackElements>;
  using Offset = long long;  ///< in elements, from the array's beginning; rows are counted in it, too

  static constexpr bool kPhaseMatched = kStarts == RowStarts::phase_matched && kPackElements > 1;
  static constexpr bool kShiftedLoads = kStarts == RowStarts::shifted_loads;
  static constexpr bool kWritesPacks =
      kThreadsPerOutput == 1 && kStarts != RowStarts::phase_matched && !kFolds && kValues == 1;
  static constexpr unsigned kLanes = kBlockThreads / kThreadsPerOutput;
  static constexpr unsigned kManyFolds = 32;  ///< from here on combined in two steps instead of one
  static constexpr unsigned kFoldsLeft = 8;
  static constexpr unsigned kTileColumns = (kPhaseMatched ? kLanes - 1 : kLanes) * kPackElements;
  static_assert(kLanes * kThreadsPerOutput == kBlockThreads && kLanes >= 2);
  static_assert(!kPhaseMatched || kThreadsPerOutput % kPackElements == 0,
                "a thread's packs begin at the same columns in all its rows");
  static_assert(!kShiftedLoads || kPackElements > 1);

  template <class Out>
  static __device__ void reduce(const In* in, const ColumnsShape& shape, void* workspace, Out* out) {
    __shared__ State of_column[kThreadsPerOutput][kTileColumns];
    const unsigned long long slice_tiles = kFolds ? 1 : shape.slice_tiles;
    const unsigned long long tiles = shape.outer * slice_tiles;
    if (blockIdx.x >= tiles * shape.parts) pdl_release_then_wait();  // blocks without a tile wait, too
    for (unsigned long long item = blockIdx.x; item < tiles * shape.parts; item += gridDim.x) {
      // 64-bit divisions take longer than a tile of few rows: none where the quotient is known.
      const unsigned part =  // neighbours: by columns
          shape.parts == 1 ? 0 : static_cast<unsigned>(item) / static_cast<unsigned>(tiles);
      const unsigned long long number = item - part * tiles;
      const unsigned long long slice = shape.outer == 1 ? 0 : number / slice_tiles;
      const unsigned long long column = (number - slice * slice_tiles) * kTileColumns;
      const Tile tile(shape, slice, column, part);
      pdl_release_then_wait();  // at the first tile; it was found meanwhile
      const Columns columns = columns_of(in, tile);
      if constexpr (kWritesPacks) {
        if (shape.parts == 1 && tile.has_packs_only()) {
          columns.write(static_cast<Index>(shape.reduced), tile, out + (slice * shape.inner + column));
          continue;
        }
      }
      columns.stage(tile, of_column);
      __syncthreads();
      combine_row_lanes(in, tile, of_column);
      unsigned folds = 1;
      if constexpr (kFolds) folds = combine_folds(tile, of_column[0]);
      finish(of_column[0], folds, shape, tile, slice * shape.inner + column, workspace, out);
      __syncthreads();
    }
  }
 private:
  /// The columns of a tile in one slice. Where rows are folded, these are the long ones.
  struct Tile {
    Offset first;  ///< of the first column in row 0
    Offset end;    ///< elements from here on do not exist, or belong to the next slice
    Offset pitch;
    Offset rows;
    Offset row_of_packs, last_of_packs;  ///< the rows [row_of_packs, last_of_packs) are taken in packs
    unsigned width;                      ///< in columns
    unsigned folds, inner;
    unsigned part, parts;

    __device__ Tile(const ColumnsShape& shape, unsigned long long slice, unsigned long long column, unsigned part_)
        : rows(static_cast<Offset>(shape.rows)),
          folds(kFolds ? shape.folds : 1),
          inner(static_cast<unsigned>(shape.inner)),
          part(part_),
          parts(shape.parts) {
      const unsigned long long left = shape.inner - column;
      // A long row at a slice's end may be cut short, and what follows does not count; else any row may be followed.
      const unsigned long long slices = kFolds ? slice + 1 : shape.outer;
      first = static_cast<Offset>(slice * shape.slice_pitch + column);
      end = static_cast<Offset>(slices * shape.slice_pitch - (shape.pitch - shape.inner));
      pitch = static_cast<Offset>(shape.pitch * folds);
      width = kFolds ? inner * folds : left < kTileColumns ? static_cast<unsigned>(left) : kTileColumns;

      // The packs of a row reach beyond the tile by up to so much. (A realigned one is loaded with the next one, which
      // it may not need.)
      const Offset before = kPhaseMatched || kShiftedLoads ? kPackElements - 1 : 0;
      const Offset rest = (kPackElements - width % kPackElements) % kPackElements;
      const Offset behind = kPhaseMatched ? kPackElements - 1 : kShiftedLoads ? kPackElements + rest : rest;
      const Offset room = end - first - width - behind;
      row_of_packs = first < before ? (before - first + pitch - 1) / pitch : 0;
      last_of_packs = room >= (rows - 1) * pitch ? rows : room < 0 ? 0 : room / pitch + 1;
    }

    __device__ bool has_packs_only() const { return row_of_packs == 0 && last_of_packs == rows; }

    /// From a row of packs to the next one that is the same thread's: the sharers of all parts take turns.
    __device__ Offset row_step() const { return static_cast<Offset>(kThreadsPerOutput) * parts; }
  };

  /// A pack as it is loaded.
  using Loaded = typename Select<kShiftedLoads, PackAcross<In, kPackElements>, ElementPack>::type;

  static __device__ Loaded load(const In* from) {
    if constexpr (kShiftedLoads) return Loaded::load(from);
    else return *reinterpret_cast<const ElementPack*>(from);
  }

  /// A thread's packs of kUnroll rows.
  struct Rows {
    Loaded packs[kUnroll];

    __device__ void load(const In* from, Offset stride) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) packs[u] = ColumnReduce::load(from + u * stride);
    }

    /// The last `left`; rows of nothing stand in for the others.
    __device__ void load_tail(const In* from, Offset stride, unsigned left) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        packs[u] = u < left ? ColumnReduce::load(from + u * stride) : Loaded::filled(Op::neutral());
    }
  };

  /// How many rows of packs are left for a thread from `row` on, where they are fewer than kUnroll: so few that 32 bits
  /// hold the difference.
  static __device__ unsigned rows_left(const Tile& tile, Offset row) {
    const auto step = static_cast<unsigned>(tile.row_step());
    return (static_cast<unsigned>(tile.last_of_packs - row) + step - 1) / step;
  }

  /// A thread's columns.
  struct Columns {
    State states[kPackElements];
    unsigned fold[kPackElements];  ///< of the rows that are one, the number of that which the column is of
    unsigned folds;
    Offset row_step;
    int column;             ///< the first, of the tile; may lie before it
    unsigned start, pitch;  ///< of row 0, in elements after the begin of a pack, and from there to the next row

    __device__ Columns(const In* in, int column_, const Tile& tile)
        : folds(tile.folds),
          row_step(tile.row_step()),
          column(column_),
          start((kPackElements - elements_before_alignment<sizeof(ElementPack)>(in + tile.first)) % kPackElements),
          pitch(static_cast<unsigned>(tile.pitch)) {
#pragma unroll
      for (int e = 0; e < static_cast<int>(kPackElements); ++e) {
        states[e] = Op::identity();
        fold[e] = kFolds && column + e >= 0 ? static_cast<unsigned>(column + e) / tile.inner : 0;
      }
    }

    /// The last `left` rows, fewer than kUnroll: all of their loads before the first is combined.
    __device__ void accumulate_tail(const In* from, Offset stride, Offset row, unsigned left) {
      Loaded packs[kUnroll];
#pragma unroll
      for (unsigned u = 0; u < kUnroll - 1; ++u)
        if (u < left) packs[u] = load(from + u * stride);
#pragma unroll
      for (unsigned u = 0; u < kUnroll - 1; ++u)
        if (u < left) {
          const Loaded one[1] = {packs[u]};
          accumulate_packs(one, row + u * row_step);
        }
    }

    /// Where the threads that share them meet.
    __device__ void stage(const Tile& tile, State (&of_column)[kThreadsPerOutput][kTileColumns]) const {
#pragma unroll
      for (int e = 0; e < static_cast<int>(kPackElements); ++e)
        if (column + e >= 0 && column + e < static_cast<int>(tile.width))
          of_column[threadIdx.x / kLanes][column + e] = states[e];
    }

    /// The results over `reduced` rows; `out` is that of the tile's first column.
    template <class Out>
    __device__ void write(Index reduced, const Tile& tile, Out* out) const {
      constexpr unsigned kElements = kPackElements * sizeof(Out) > 16 ? 16 / sizeof(Out) : kPackElements;
      constexpr unsigned kPacks = kPackElements / kElements;
      using OutPack = Pack<Out, kElements>;
      const bool is_aligned = elements_before_alignment<sizeof(OutPack)>(out) == 0;
      if constexpr (kPacks > 1) {
        if (is_aligned && tile.width == kTileColumns) {
          write_whole<OutPack, kPacks>(reduced, reinterpret_cast<OutPack*>(out));
          return;
        }
      }
#pragma unroll
      for (unsigned p = 0; p < kPacks; ++p) {
        const OutPack results = results_of<OutPack>(p, reduced);
        const unsigned first = static_cast<unsigned>(column) + p * kElements;
        if (is_aligned && first + kElements <= tile.width) {
          store_streaming(reinterpret_cast<OutPack*>(out + first), results);
        } else {
#pragma unroll
          for (unsigned e = 0; e < kElements; ++e)
            if (first + e < tile.width) out[first + e] = results[e];
        }
      }
    }

    /// Those of a whole tile. Neighbouring lanes store neighbouring packs: each instruction fills whole sectors.
    template <class OutPack, unsigned kPacks>
    __device__ void write_whole(Index reduced, OutPack* out) const {
      OutPack results[kPacks];
#pragma unroll
      for (unsigned p = 0; p < kPacks; ++p) results[p] = results_of<OutPack>(p, reduced);
      transpose_lanes(results);
      out += threadIdx.x / kPacks * kPacks * kPacks + threadIdx.x % kPacks;
#pragma unroll
      for (unsigned p = 0; p < kPacks; ++p) store_streaming(out + p * kPacks, results[p]);
    }

    /// The p-th pack of a thread's results.
    template <class OutPack>
    __device__ OutPack results_of(unsigned p, Index reduced) const {
      OutPack results;
#pragma unroll
      for (unsigned e = 0; e < OutPack::kElements; ++e) {
        decltype(results[0]) result;
        Op::write(states[p * OutPack::kElements + e], reduced, &result);
        results.set(e, result);
      }
      return results;
    }

    template <unsigned kRows>
    __device__ void accumulate_packs(const Loaded (&loaded)[kRows], Offset row) {
      Index first[kPackElements];
#pragma unroll
      for (unsigned e = 0; e < kPackElements; ++e) first[e] = static_cast<Index>(row) * folds + fold[e];
      if constexpr (kShiftedLoads) {
        ElementPack packs[kRows];
#pragma unroll
        for (unsigned u = 0; u < kRows; ++u)
          packs[u] = loaded[u].after((start + static_cast<unsigned>(row + u * row_step) * pitch) % kPackElements);
        Op::accumulate_columns(states, packs, first, static_cast<Index>(row_step) * folds);
      } else {
        Op::accumulate_columns(states, loaded, first, static_cast<Index>(row_step) * folds);
      }
    }
  };

  /// What a thread finds in its columns, in the rows of packs that are its own.
  static __device__ Columns columns_of(const In* in, const Tile& tile) {
    const Offset row_lane = threadIdx.x / kLanes + static_cast<Offset>(tile.part) * kThreadsPerOutput;
    const int width = static_cast<int>(tile.width);
    Offset row = tile.row_of_packs + row_lane;
    const In* from = in + (tile.first + row * tile.pitch);
    int column = static_cast<int>(threadIdx.x % kLanes * kPackElements);  // of the tile; may lie before it
    if constexpr (kPhaseMatched) {
      const unsigned shift = elements_before_alignment<sizeof(ElementPack)>(from);
      if (shift != 0) column += static_cast<int>(shift) - static_cast<int>(kPackElements);
    }
    Columns columns(in, column, tile);
    if (column < width) {
      from += column;
      const Offset step = tile.row_step();
      const Offset stride = step * tile.pitch;
      const auto is_full = [&](Offset first) { return first + (kUnroll - 1) * step < tile.last_of_packs; };
      row = for_each_full_tile<Op::kComputeBound, kFewTiles, Rows>(
          row, kUnroll * step,
          [&](Offset first) { return Op::kHasNeutral ? first < tile.last_of_packs : is_full(first); },
          [&](Rows& rows, Offset first) {
            if constexpr (Op::kHasNeutral) {
              if (is_full(first)) rows.load(from, stride);
              else rows.load_tail(from, stride, rows_left(tile, first));
            } else {
              rows.load(from, stride);
            }
            from += kUnroll * stride;
          },
          [&](const Rows& rows, Offset first) { columns.accumulate_packs(rows.packs, first); });
      if constexpr (!Op::kHasNeutral)
        if (row < tile.last_of_packs) columns.accumulate_tail(from, stride, row, rows_left(tile, row));
    }
    return columns;
  }

  /// Combines the states of each column into the row of the first row_lane; the first part adds the rows that were not
  /// taken in packs.
  static __device__ void combine_row_lanes(const In* in, const Tile& tile,
                                           State (&of_column)[kThreadsPerOutput][kTileColumns]) {
    const SmemCombine<Op, kBlockThreads, kThreadsPerOutput, kTileColumns> smem(of_column[0], tile.width);
    for_columns(tile.width, [&](unsigned c) {
      State state = smem.combined(c);
      for (Offset row = 0; tile.part == 0 && row < tile.rows; ++row) {
        if (row == tile.row_of_packs && tile.row_of_packs < tile.last_of_packs) row = tile.last_of_packs;
        const Offset offset = tile.first + row * tile.pitch + c;
        if (row >= tile.rows || offset >= tile.end) break;
        const Index fold = kFolds ? c / tile.inner : 0;
        state = Op::combine(state, Op::of(in[offset], static_cast<Index>(row) * tile.folds + fold));
      }
      of_column[0][c] = state;
    });
  }

  /// Leaves of the columns of many rows that are taken as one those of a few rows, which lie first: so many.
  static __device__ unsigned combine_folds(const Tile& tile, State* states) {
    __syncthreads();
    if (tile.folds < kManyFolds) return tile.folds;
    for_columns(kFoldsLeft * tile.inner, [&](unsigned c) {
      const unsigned count = (tile.folds - c / tile.inner + kFoldsLeft - 1) / kFoldsLeft;
      states[c] = Op::of_states(&states[c], count, kFoldsLeft * tile.inner);
    });
    __syncthreads();
    return kFoldsLeft;
  }

  /// Writes or publishes the tile's outputs, of which `output` is the first; each is what `folds` columns have.
  template <class Out>
  static __device__ void finish(const State* states, unsigned folds, const ColumnsShape& shape, const Tile& tile,
                                unsigned long long output, void* workspace, Out* out) {
    const unsigned width = kFolds ? tile.inner : tile.width;
    for_columns(width, [&](unsigned c) {
      const State state = Op::of_states(&states[c], folds, tile.inner);
      if (shape.parts == 1) Op::write(state, static_cast<Index>(shape.reduced), out + (output + c) * kValues);
      else partials_in<State>(workspace)[tile.part * shape.outer * shape.inner + output + c] = state;
    });
  }

  /// For each of a tile's columns; at most one of a thread where the tile has no more than the block has threads.
  template <class Do>
  static __device__ void for_columns(unsigned width, const Do& act) {
    if constexpr (kTileColumns <= kBlockThreads) {
      if (threadIdx.x < width) act(threadIdx.x);
    } else {
      for (unsigned c = threadIdx.x; c < width; c += kBlockThreads) act(c);
    }
  }
};

}  // namespace hone
