// The columns of one thread in a tile of reduce_columns.cuh: a State per column of its packs, in registers.
#pragma once

#include "column_tile.cuh"
#include "lanes.cuh"

namespace hone {

/// A thread's packs of some rows.
template <class Tiling, unsigned kRows = Tiling::kUnroll>
struct ThreadRows {
  typename Tiling::Loaded packs[kRows];

  /// Loads `count` rows, or all; the others are neutral if the operation has such elements.
  __device__ void load(const typename Tiling::In* from, typename Tiling::Offset stride, unsigned count = kRows) {
    unrolled<kRows>([&](unsigned u) {
      if (u < count) packs[u] = Tiling::load(from + u * stride);
      else if constexpr (Tiling::Op::kHasNeutral) packs[u] = Tiling::Loaded::filled(Tiling::Op::neutral());
    });
  }
};

template <class Tiling>
struct ThreadColumns {
  using Op = typename Tiling::Op;
  using In = typename Tiling::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Offset = typename Tiling::Offset;
  using Loaded = typename Tiling::Loaded;
  using ElementPack = typename Tiling::ElementPack;
  using Tile = ColumnTile<Tiling>;
  static constexpr unsigned kPackElements = Tiling::kPackElements;

  State states[kPackElements];
  unsigned fold[kPackElements];  ///< which of the rows that form a long row the column belongs to
  unsigned folds;
  Offset row_step;
  int column;             ///< the first column, relative to the tile; may be negative
  unsigned start, pitch;  ///< misalignment of row 0 in elements, and the distance from row to row

  __device__ ThreadColumns(const In* in, int column_, const Tile& tile)
      : folds(tile.folds),
        row_step(tile.row_step()),
        column(column_),
        start(elements_behind_alignment<sizeof(ElementPack)>(in + tile.first)),
        pitch(static_cast<unsigned>(tile.pitch)) {
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPackElements); ++e) {
      states[e] = Op::identity();
      fold[e] = Tiling::kFolds && column + e >= 0 ? static_cast<unsigned>(column + e) / tile.inner : 0;
    }
  }

  template <unsigned kRows>
  __device__ void accumulate_packs(const Loaded (&loaded)[kRows], Offset row) {
    const Array<Index, kPackElements> first([&](unsigned e) { return static_cast<Index>(row) * folds + fold[e]; });
    const auto stride = static_cast<Index>(row_step) * folds;
    if constexpr (Tiling::kShiftedLoads) {
      const Array<ElementPack, kRows> packs([&](unsigned u) {
        return loaded[u].after((start + static_cast<unsigned>(row + u * row_step) * pitch) % kPackElements);
      });
      Op::accumulate_columns(states, packs.values, first.values, stride);
    } else {
      Op::accumulate_columns(states, loaded, first.values, stride);
    }
  }

  /// The last `left` rows, fewer than kUnroll: all loads come first.
  __device__ void accumulate_tail(const In* from, Offset stride, Offset row, unsigned left) {
    constexpr unsigned kMostLeft = Tiling::kUnroll > 1 ? Tiling::kUnroll - 1 : 1;
    ThreadRows<Tiling, kMostLeft> rows;
    rows.load(from, stride, left);
    unrolled<kMostLeft>([&](unsigned u) {
      const Loaded one[1] = {rows.packs[u]};
      if (u < left) accumulate_packs(one, row + u * row_step);
    });
  }

  /// Stores the States in shared memory, where the threads that share the columns are combined.
  __device__ void stage(const Tile& tile, State (&of_column)[Tiling::kThreadsPerOutput][Tiling::kSlots]) const {
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPackElements); ++e)
      if (column + e >= 0 && column + e < static_cast<int>(tile.width))
        of_column[threadIdx.x / Tiling::kLanes][Tiling::slot(static_cast<unsigned>(column + e))] = states[e];
  }

  /// Writes the results over `reduced` rows straight from registers; `out` belongs to the tile's first column.
  template <class Out>
  __device__ void write(Index reduced, const Tile& tile, Out* out) const {
    constexpr unsigned kElements = kPackElements * sizeof(Out) > 16 ? 16 / sizeof(Out) : kPackElements;
    constexpr unsigned kPacks = kPackElements / kElements;
    using OutPack = Pack<Out, kElements>;
    const bool is_aligned = elements_before_alignment<sizeof(OutPack)>(out) == 0;
    if constexpr (kPacks > 1) {
      if (is_aligned && tile.width == Tiling::kTileColumns) {
        // Neighbouring lanes store neighbouring packs: coalesced, in whole sectors.
        Array<OutPack, kPacks> results([&](unsigned p) { return results_of<OutPack>(p, reduced); });
        transpose_lanes(results.values);
        const unsigned first = threadIdx.x / kPacks * kPacks * kPacks + threadIdx.x % kPacks;
        auto* const to = reinterpret_cast<OutPack*>(out) + first;
        unrolled<kPacks>([&](unsigned p) { store_streaming(to + p * kPacks, results.values[p]); });
        return;
      }
    }
    unrolled<kPacks>([&](unsigned p) {
      const OutPack results = results_of<OutPack>(p, reduced);
      const unsigned first = static_cast<unsigned>(column) + p * kElements;
      if (is_aligned && first + kElements <= tile.width) {
        store_streaming(reinterpret_cast<OutPack*>(out + first), results);
      } else {
        unrolled<kElements>([&](unsigned e) {
          if (first + e < tile.width) out[first + e] = results[e];
        });
      }
    });
  }

  /// The p-th pack of a thread's results.
  template <class OutPack>
  __device__ OutPack results_of(unsigned p, Index reduced) const {
    return OutPack::of([&](unsigned e) {
      decltype(OutPack()[0]) result;
      Op::write(states[p * OutPack::kElements + e], reduced, &result);
      return result;
    });
  }
};

}  // namespace hone
