// Reduces each row of a matrix to one value, or two: row r has its kValues results at out[r · kValues].
//
//   RowLanes   kLanes neighbouring lanes of a warp per row, from 1 to 32. A thread loads kUnroll packs of each of kRows
//              rows before it combines any, so that several loads are in flight even if a row is a single pack.
//   RowBlocks  one block per row, a cluster of blocks, or any number of blocks whose partials a second kernel combines.
//
// Rows may begin at any element, unless kIsAligned says that all begin a pack (PackRange); short misaligned rows are
// faster in staged_reduce.cuh. The order of combination depends only on the columns, the grid and the row's alignment.
//
// Constraints: kBlockThreads, kUnroll and kRows are powers of two, kBlockThreads at least two packs' elements;
// Op::Index holds the columns plus one tile of all blocks of a row.
#pragma once

#include "pack_range.cuh"
#include "partials.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows, bool kIsAligned,
          class Out, unsigned kValues>
struct RowLanes {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Row = PackRange<OneArray<In, 16 / sizeof(In)>, Index>;
  static constexpr unsigned kPackElements = Row::kPackElements;
  static constexpr unsigned kGroups = kBlockThreads / kLanes;
  static constexpr unsigned kTileRows = kGroups * kRows;
  static_assert(kLanes <= kWarpThreads && (kLanes & (kLanes - 1)) == 0 && kBlockThreads % kWarpThreads == 0);
  struct Tile {
    typename Row::ElementPack packs[kRows][kUnroll];
  };

  static __device__ void reduce(const RowsArguments& all) {
    const In* const in = static_cast<const In*>(all.in);
    const auto columns = static_cast<Index>(all.columns);
    const unsigned long long rows = all.rows, pitch = all.pitch, tile_rows = kTileRows;
    Combine<Op, kLanes> combine;
    const unsigned lane = combine.rank();
    for (auto tile = blockIdx.x * tile_rows; tile < rows; tile += gridDim.x * tile_rows) {
      const unsigned long long first = tile + threadIdx.x / kLanes;
      Row row[kRows];
      State states[kRows];
      bool is_there[kRows];
      unrolled<kRows>([&](unsigned r) {
        is_there[r] = first + r * kGroups < rows;
        row[r] = Row::template of<!kIsAligned>({in + (first + r * kGroups) * pitch}, columns);
        if (!is_there[r]) row[r].packs = 0;
        states[r] = Op::identity();
      });
      accumulate_packs(states, row, columns / kPackElements, lane);
      const Array<typename Row::Single, kRows> singles(
          [&](unsigned r) { return row[r].template load_single<kLanes>(lane, is_there[r]); });
      unrolled<kRows>([&](unsigned r) {
        row[r].template accumulate_singles<Op, kLanes>(states[r], singles.values[r], lane);
        if (combine.to_first(states[r]) && is_there[r])
          Op::write(states[r], columns, static_cast<Out*>(all.out) + (first + r * kGroups) * kValues);
      });
    }
  }

 private:
  /// No row has more than `most` packs.
  static __device__ void accumulate_packs(State (&states)[kRows], const Row (&row)[kRows], Index most, unsigned lane) {
    Index least = row[0].packs;
    unrolled<kRows>([&](unsigned r) { least = row[r].packs < least ? row[r].packs : least; });

    constexpr bool kLoadsAhead = Op::kComputeBound && kRows == 1;  // with several rows at once, each has few tiles
    const unsigned to_last_lane = kLanes - 1 - lane;  // a tile is full if all lanes have theirs: they take one path
    Index p = for_each_full_tile<kLoadsAhead, false, Tile>(
        Index(lane), Index(kLanes * kUnroll),
        [&](Index pack) { return pack + to_last_lane + (kUnroll - 1) * kLanes < least; },
        [&](Tile& tile, Index pack) {
          unrolled<kRows>([&](unsigned r) {
            unrolled<kUnroll>([&](unsigned u) { tile.packs[r][u] = row[r].pack(pack + u * kLanes); });
          });
        },
        [&](const Tile& tile, Index pack) {
          unrolled<kRows>([&](unsigned r) {
            Op::accumulate(states[r], tile.packs[r], row[r].index_of_pack(pack), Index(kLanes * kPackElements));
          });
        });
    for (; p < most; p += kLanes * kUnroll) {  // absent rows, and the tails of the others
      Tile tile;
      unrolled<kRows>([&](unsigned r) { row[r].template load_tail<Op>(tile.packs[r], p, Index(kLanes)); });
      unrolled<kRows>([&](unsigned r) {
        row[r].template accumulate_tail<Op>(states[r], tile.packs[r], p, Index(kLanes));
      });
    }
  }
};

template <class Op, unsigned kBlockThreads, unsigned kUnroll, class Out, unsigned kValues, Tail kTail>
struct RowBlocks {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using Range = PackRange<OneArray<In, 16 / sizeof(In)>, Index>;

  /// Blocks of a row are neighbours in the grid: a cluster, or with Grid::publish `parts` of them, then one row each.
  template <Grid kGrid, unsigned kClusterBlocks = 1>
  static __device__ void reduce(const RowsArguments& all) {
    constexpr bool kPublishes = kGrid == Grid::publish;
    Combine<Op, kBlockThreads, kClusterBlocks, kGrid, !kPublishes, kTail, Exchange::receipts> combine;
    const unsigned blocks = kPublishes ? all.parts : kClusterBlocks;
    const unsigned part = blockIdx.x % blocks;
    const auto rows = all.rows;
    for (unsigned long long row = blockIdx.x / blocks; row < rows; row += gridDim.x / blocks) {
      const In* const first = static_cast<const In*>(all.in) + row * all.pitch;
      const auto range = Range::of({first}, static_cast<Index>(all.columns));
      typename Op::State state = Op::identity();
      range.template accumulate_share<Op, kBlockThreads, kUnroll>(state, threadIdx.x, part, blocks);
      const auto partial = part * static_cast<unsigned>(rows) + static_cast<unsigned>(row);
      if (combine.to_first(state, all.workspace, partial))
        Op::write(state, static_cast<Index>(all.columns), static_cast<Out*>(all.out) + row * kValues);
      if constexpr (kPublishes) return;
    }
  }
};

}  // namespace hone
