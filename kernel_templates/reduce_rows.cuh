// Reduces each row of a matrix to one value, or two.
//
// Two kernels, by the number of threads per row:
//
//   RowLanes   kLanes neighbouring lanes of a warp per row, from 1 to 32. A thread loads kUnroll packs of each of kRows
//              rows before it combines any, so that several loads are in flight even if a row is a single pack.
//   RowBlocks  one block per row, a cluster of blocks, or any number of blocks whose partials a second kernel combines:
//              each is a Reduce of the row by so many blocks.
//
// Rows may begin at any element-aligned address, unless kIsAligned says that all are aligned to a pack: elements before
// a row's first aligned pack and after its last full one are handled by single lanes. Short misaligned rows are faster
// in staged_reduce.cuh.
//
// `pitch` is the leading dimension, in elements; row r has its kValues results at out[r · kValues]. The order of
// combination depends only on the columns, the grid and the row's alignment.
//
// Constraints: kBlockThreads is a power of two, a multiple of a warp and at least two packs' elements; kLanes is a
// power of two up to 32; kUnroll and kRows are powers of two; Op::Index holds the columns plus one tile of all blocks
// of a row.
#pragma once

#include "axis_arguments.h"
#include "partials.cuh"
#include "reduce.cuh"

namespace hone {

template <class Op, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows, bool kIsAligned,
          class Out, unsigned kValues>
struct RowLanes {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;

  static constexpr unsigned kPackElements = 16 / sizeof(In);
  static constexpr unsigned kGroups = kBlockThreads / kLanes;
  static constexpr unsigned kTileRows = kGroups * kRows;
  static_assert(kLanes <= kWarpThreads && (kLanes & (kLanes - 1)) == 0 && kBlockThreads % kWarpThreads == 0);

  using Source = OneArray<In, kPackElements>;
  using ElementPack = typename Source::ElementPack;

  struct Row {
    Source source;
    Index head, packs;
    bool is_there;
  };

  struct Tile {
    ElementPack packs[kRows][kUnroll];
  };

  static __device__ void reduce(const RowsArguments& all) {
    const In* const in = static_cast<const In*>(all.in);
    const auto columns = static_cast<Index>(all.columns);
    const unsigned long long rows = all.rows, pitch = all.pitch;
    pdl_release_then_wait();
    const unsigned lane = threadIdx.x % kLanes;
    const unsigned long long tile_stride = static_cast<unsigned long long>(gridDim.x) * kTileRows;
    for (unsigned long long tile = static_cast<unsigned long long>(blockIdx.x) * kTileRows; tile < rows;
         tile += tile_stride) {
      const unsigned long long first = tile + threadIdx.x / kLanes;
      Row row[kRows];
      State states[kRows];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        row[r] = row_at(in + (first + r * kGroups) * pitch, columns, first + r * kGroups < rows);
        states[r] = Op::identity();
      }
      accumulate_packs(states, row, columns, lane);
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        accumulate_ends(states[r], row[r], columns, lane);
        const State state = lanes_reduce<Op, kLanes>(states[r]);
        if (lane == 0 && row[r].is_there)
          Op::write(state, columns, static_cast<Out*>(all.out) + (first + r * kGroups) * kValues);
      }
    }
  }

 private:
  static __device__ Row row_at(const In* in, Index columns, bool is_there) {
    const Source source{in};
    const Index unaligned = kIsAligned ? 0 : source.unaligned();
    const Index head = unaligned < columns ? unaligned : columns;
    return {source, head, is_there ? (columns - head) / kPackElements : 0, is_there};
  }

  static __device__ void accumulate_packs(State (&states)[kRows], const Row (&row)[kRows], Index columns,
                                          unsigned lane) {
    constexpr Index kStride = kLanes * kPackElements;
    Index least = row[0].packs;
#pragma unroll
    for (unsigned r = 1; r < kRows; ++r) least = row[r].packs < least ? row[r].packs : least;

    const Index most = columns / kPackElements;
    constexpr bool kLoadsAhead = Op::kComputeBound && kRows == 1;  // with several rows at once, each has few tiles
    Index p = for_each_full_tile<kLoadsAhead, false, Tile>(
        Index(lane), Index(kLanes * kUnroll), [&](Index pack) { return pack + (kUnroll - 1) * kLanes < least; },
        [&](Tile& tile, Index pack) {
#pragma unroll
          for (unsigned r = 0; r < kRows; ++r)
#pragma unroll
            for (unsigned u = 0; u < kUnroll; ++u)
              tile.packs[r][u] = row[r].source.pack(row[r].head, pack + u * kLanes);
        },
        [&](const Tile& tile, Index pack) {
#pragma unroll
          for (unsigned r = 0; r < kRows; ++r)
            Op::accumulate(states[r], tile.packs[r], row[r].head + pack * kPackElements, kStride);
        });
    for (; p < most; p += kLanes * kUnroll) {  // absent rows, and the tails of the others
      ElementPack tile[kRows][kUnroll];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r)
        load_tail<Op>(tile[r], row[r].source, row[r].head, row[r].packs, p, Index(kLanes));
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r)
        accumulate_tail<Op>(states[r], tile[r], row[r].head, row[r].packs, p, Index(kLanes));
    }
  }

  /// Accumulates the elements [0, head) and those after the last pack.
  static __device__ void accumulate_ends(State& state, const Row& row, Index columns, unsigned lane) {
    if (!row.is_there) return;
    const Index ends = columns - row.packs * kPackElements;
    for (Index end = lane; end < ends; end += kLanes) {
      const Index i = end < row.head ? end : row.packs * kPackElements + end;
      state = Op::combine(state, Op::of(row.source.element(i), i));
    }
  }
};

template <class Op, unsigned kBlockThreads, unsigned kUnroll, class Out, unsigned kValues, Tail kTail>
struct RowBlocks {
  using In = typename Op::In;
  using Index = typename Op::Index;
  using State = typename Op::State;
  using Row = Reduce<Op, OneArray, Outputs<>, kBlockThreads, 16, kUnroll>;

  /// The partial of block `part` of the `parts` that share a row.
  static __device__ State block_partial(const RowsArguments& all, unsigned long long row, unsigned part,
                                        unsigned parts) {
    const In* const first = static_cast<const In*>(all.in) + row * all.pitch;
    return block_reduce<Op, kBlockThreads, kTail>(
        Row::thread_partial({first}, static_cast<Index>(all.columns), part, parts));
  }

  static __device__ void write(State state, const RowsArguments& all, unsigned long long row) {
    Op::write(state, static_cast<Index>(all.columns), static_cast<Out*>(all.out) + row * kValues);
  }

  /// One block per row.
  static __device__ void whole(const RowsArguments& all) {
    pdl_release_then_wait();
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      const State state = block_partial(all, row, 0, 1);
      if (threadIdx.x == 0) write(state, all, row);
      __syncthreads();
    }
  }

  /// `parts` blocks per row, neighbours in the grid.
  static __device__ void publish_parts(const RowsArguments& all) {
    const auto rows = static_cast<unsigned>(all.rows);
    const unsigned row = blockIdx.x / all.parts;
    const unsigned part = blockIdx.x % all.parts;
    pdl_release_then_wait();
    if (row >= rows) return;
    const State state = block_partial(all, row, part, all.parts);
    if (threadIdx.x == 0) partials_in<State>(all.workspace)[part * rows + row] = state;
  }

#ifndef HONE_HOST_DEVICE
  /// One cluster per row. Double buffering: the partials of one row are read while those of the next are written.
  template <unsigned kClusterBlocks>
  static __device__ void cluster(const RowsArguments& all) {
    __shared__ State of_block[2][kClusterBlocks];
    arrive_at_cluster_barrier();
    pdl_release_then_wait();
    wait_at_cluster_barrier();  // every block has started: DSMEM may be accessed
    const unsigned rank = rank_in_cluster();
    unsigned buffer = 0;
    for (unsigned long long row = blockIdx.x / kClusterBlocks; row < all.rows; row += gridDim.x / kClusterBlocks) {
      const State state = block_partial(all, row, rank, kClusterBlocks);
      if (threadIdx.x == 0) store_in_block(&of_block[buffer][rank], 0, state);
      arrive_at_cluster_barrier();
      wait_at_cluster_barrier();
      if (rank == 0 && threadIdx.x < kWarpThreads) {
        const unsigned lane = threadIdx.x;
        const State of_row =
            warp_reduce<Op, kClusterBlocks>(lane < kClusterBlocks ? of_block[buffer][lane] : Op::identity());
        if (lane == 0) write(of_row, all, row);
      }
      buffer ^= 1;
    }
  }
#endif
};

}  // namespace hone
