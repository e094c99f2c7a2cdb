// The columns of one thread in a tile of reduce_columns.cuh: a State per column of its packs, in registers.
#pragma once

#include "lanes.cuh"
#include "tile_rows.cuh"

namespace hone {

/// A thread's packs of the rows of a tile.
template <class Tiling>
struct ThreadRows {
  using Op = typename Tiling::Op;
  using Offset = typename Tiling::Offset;

  typename Tiling::Loaded packs[Tiling::kUnroll];

  __device__ void load(const typename Tiling::In* from, Offset pitch, const TileRows<Tiling>& rows) {
    unrolled<Tiling::kUnroll>([&](unsigned u) { packs[u] = Tiling::load(from + rows.distance(u) * pitch, u); });
  }

  /// Loads those that exist; the others are neutral if the operation has such elements.
  __device__ void load(const typename Tiling::In* from, Offset pitch, const TileRows<Tiling>& rows, unsigned left) {
    unrolled<Op::kHasNeutral ? Tiling::kUnroll : Tiling::kMostLeft>([&](unsigned u) {
      if (rows.is_there(u, left)) packs[u] = Tiling::load(from + rows.distance(u) * pitch, u);
      else if constexpr (Op::kHasNeutral) packs[u] = Tiling::Loaded::filled(Op::neutral());
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
  using ElementPack = typename Tiling::ElementPack;
  using Tile = ColumnTile<Tiling>;
  using Rows = ThreadRows<Tiling>;
  static constexpr unsigned kPackElements = Tiling::kPackElements;

  State states[kPackElements];
  unsigned fold[kPackElements];  ///< which of the rows that form a long row the column belongs to
  unsigned folds;
  int column;  ///< the first column, relative to the tile; may be negative

  __device__ ThreadColumns(int column_, const Tile& tile) : folds(tile.folds), column(column_) {
#pragma unroll
    for (int e = 0; e < static_cast<int>(kPackElements); ++e) {
      states[e] = Op::identity();
      fold[e] = Tiling::kFolds && column + e >= 0 ? static_cast<unsigned>(column + e) / tile.inner : 0;
    }
  }

  /// Accumulates a tile whose first row is `row`.
  __device__ void accumulate_packs(const Rows& loaded, Offset row, const TileRows<Tiling>& rows) {
    if constexpr (Tiling::kShiftedLoads && Op::kIsIndexed) {
      unrolled<Tiling::kUnroll>([&](unsigned u) { accumulate_row(loaded, u, row, rows); });
    } else if constexpr (Tiling::kShiftedLoads) {
      const Array<ElementPack, Tiling::kUnroll> packs([&](unsigned u) { return pack(loaded, u); });
      accumulate_columns(packs.values, row, rows.distance(1));
    } else {
      accumulate_columns(loaded.packs, row, rows.distance(1));
    }
  }

  /// The last rows, of which `left` are left, those of other threads included.
  __device__ void accumulate_tail(const Rows& loaded, Offset row, const TileRows<Tiling>& rows, unsigned left) {
    unrolled<Tiling::kMostLeft>([&](unsigned u) {
      if (rows.is_there(u, left)) accumulate_row(loaded, u, row, rows);
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

 private:
  static __device__ ElementPack pack(const Rows& loaded, unsigned u) {
    if constexpr (Tiling::kShiftedLoads) return loaded.packs[u].after(Tiling::shift(u));
    else return loaded.packs[u];
  }

  /// Accumulates packs of rows from `row` on that are `step` apart; the order matters where indices do.
  template <unsigned kRows>
  __device__ void accumulate_columns(const ElementPack (&packs)[kRows], Offset row, Offset step) {
    const Array<Index, kPackElements> first([&](unsigned e) { return static_cast<Index>(row) * folds + fold[e]; });
    Op::accumulate_columns(states, packs, first.values, static_cast<Index>(step) * folds);
  }

  /// Accumulates row `u` of a tile. Later ones may have lower indices with shifted loads.
  __device__ void accumulate_row(const Rows& loaded, unsigned u, Offset row, const TileRows<Tiling>& rows) {
    const ElementPack one[1] = {pack(loaded, u)};
    if constexpr (Tiling::kShiftedLoads && Op::kIsIndexed) {
      const auto index = static_cast<Index>(row + rows.distance(u));
      unrolled<kPackElements>([&](unsigned e) { states[e] = Op::combine(states[e], Op::of(one[0][e], index)); });
    } else {
      accumulate_columns(one, row + rows.distance(u), 0);
    }
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
