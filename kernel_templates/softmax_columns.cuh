// Softmax, or its logarithm, over the middle extent of outer × reduced × inner: of each column of a matrix.
//
// A block has a tile of kLanes packs of neighbouring columns, kBlockThreads ÷ kLanes threads per column, whose rows are
// interleaved. A thread holds kPacks rows of its columns in registers; all other rows are read twice. Maxima and sums
// of a column are combined in shared memory, through DSMEM, or through the workspace:
//
//   block      one block per tile
//   cluster    the blocks of a cluster share the rows of a tile
//   chunks     many blocks share the rows of a tile, in two launches: the first publishes maximum and sum of each chunk
//              of rows; the second combines those of all chunks, reads its own chunk again and writes it
//
// May be in place. Constraints: kBlockThreads and kLanes are powers of two; packs of columns are aligned in every row,
// and `inner` is a multiple of them.
#pragma once

#include "grid.cuh"
#include "kernel.cuh"
#include "softmax_column_share.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kPacks>
struct SoftmaxColumns {
  using Acc = typename Types::Acc;
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  using Array = SoftmaxArray<Types>;
  using Arguments = typename Array::Arguments;
  using States = ColumnStates<Types>;
  using Tile = SoftmaxColumnTile<Types, kBlockThreads, kLanes>;
  using Share = SoftmaxColumnShare<Types, kBlockThreads, kLanes, kPacks>;
  using Results = typename Share::Results;

  static constexpr unsigned kElements = Types::kElements;
  static constexpr unsigned kColumns = Tile::kColumns;
  static constexpr unsigned kRowLanes = Tile::kRowLanes;
  /// Partials of a column in shared memory: lanes of a warp that share the column are combined before, by shuffles.
  static constexpr unsigned kPartials = kLanes < 32 ? kBlockThreads / 32 : kRowLanes;

  /// Combines the States of each column over the block, and calls use(column, state) in one thread per column.
  template <class Use>
  static __device__ void combine_columns(const States& states, const Scale& scale, Use use) {
    __shared__ State partials[kPartials][kColumns];
    const unsigned lane = threadIdx.x % kLanes;
    const unsigned place = kLanes < 32 ? threadIdx.x / 32 : threadIdx.x / kLanes;
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) {
      State state = states.oriented(e, scale);
      if constexpr (kLanes < 32) {
        Acc largest = state.largest;
#pragma unroll
        for (unsigned offset = 16; offset >= kLanes; offset /= 2)
          largest = larger<true>(largest, __shfl_xor_sync(0xffffffffu, largest, static_cast<int>(offset)));
        Acc sum = rescaled_sum(state, largest, scale.magnitude());
#pragma unroll
        for (unsigned offset = 16; offset >= kLanes; offset /= 2)
          sum += __shfl_xor_sync(0xffffffffu, sum, static_cast<int>(offset));
        state = {largest, sum};
      }
      if (kLanes >= 32 || threadIdx.x % 32 < kLanes) partials[place][lane * kElements + e] = state;
    }
    __syncthreads();
    for (unsigned column = threadIdx.x; column < kColumns; column += kBlockThreads) {
      State all = partials[0][column];
      for (unsigned i = 1; i < kPartials; ++i) all = combine(all, partials[i][column], scale.magnitude());
      use(column, all);
    }
  }

  static __device__ void block(const Arguments& arguments) {
    const Array all(arguments);
    __shared__ State combined[kColumns];
    pdl_release_then_wait();
    const long long tiles = Tile::tiles_of(all);
    for (long long i = blockIdx.x; i < tiles; i += gridDim.x) {
      const Tile tile(all, i, threadIdx.x / kLanes, all.reduced, kRowLanes);
      Share share;
      States states(all.scale);
      share.load(all, tile);
      share.add_to(states, all, tile);
      combine_columns(states, all.scale, [&](unsigned column, State state) { combined[column] = state; });
      __syncthreads();
      share.write(all, tile, combined);
    }
  }

  static __device__ State* partials_of(void* workspace, long long tile, unsigned chunks) {
    return partials_in<State>(workspace) + tile * chunks * kColumns;
  }

  static __device__ void publish_chunks(const Arguments& arguments) {
    const Array all(arguments);
    const unsigned chunks = arguments.chunks;
    pdl_release_then_wait();
    const long long items = Tile::tiles_of(all) * chunks;
    for (long long item = blockIdx.x; item < items; item += gridDim.x) {
      const long long at = item / chunks;
      const auto chunk = static_cast<unsigned>(item - at * chunks);
      const Tile tile = Tile::chunk_of(all, at, chunk, chunks);
      States states(all.scale);
      Share::add_rows(all, tile, tile.first, states);
      State* const partials = partials_of(arguments.workspace, at, chunks) + chunk * kColumns;
      combine_columns(states, all.scale, [&](unsigned column, State state) { partials[column] = state; });
      __syncthreads();  // before the partials in shared memory are overwritten
    }
  }

  /// In reverse order: the chunks that were read last may still be in cache.
  static __device__ void write_chunks(const Arguments& arguments) {
    const Array all(arguments);
    const unsigned chunks = arguments.chunks;
    __shared__ State combined[kColumns];
    pdl_release_then_wait();
    const long long items = Tile::tiles_of(all) * chunks;
    for (long long i = blockIdx.x; i < items; i += gridDim.x) {
      const long long item = items - 1 - i;
      const long long at = item / chunks;
      const Tile tile = Tile::chunk_of(all, at, static_cast<unsigned>(item - at * chunks), chunks);
      const State* const partials = partials_of(arguments.workspace, at, chunks) + threadIdx.x % kLanes * kElements;
      States states(all.scale);
      for (unsigned chunk = threadIdx.x / kLanes; chunk < chunks; chunk += kRowLanes) {
#pragma unroll
        for (unsigned e = 0; e < kElements; ++e)
          states.combine_with(e, load_from_l2(partials + chunk * kColumns + e), all.scale);
      }
      combine_columns(states, all.scale, [&](unsigned column, State state) { combined[column] = state; });
      __syncthreads();
      Share::write_rows(all, tile, tile.first, Results::from(combined, all.scale));
    }
  }

#ifndef HONE_HOST_DEVICE
  template <unsigned kClusterBlocks>
  static __device__ void cluster(const Arguments& arguments) {
    const Array all(arguments);
    __shared__ State of_block[kClusterBlocks][kColumns];
    __shared__ State combined[kColumns];
    arrive_at_cluster_barrier();
    pdl_release_then_wait();
    const unsigned rank = rank_in_cluster();
    const long long tiles = Tile::tiles_of(all);
    for (long long i = blockIdx.x / kClusterBlocks; i < tiles; i += gridDim.x / kClusterBlocks) {
      const Tile tile(all, i, rank * kRowLanes + threadIdx.x / kLanes, all.reduced, kRowLanes * kClusterBlocks);
      Share share;
      States states(all.scale);
      share.load(all, tile);
      share.add_to(states, all, tile);
      wait_at_cluster_barrier();  // every block has started, and has read the partials of the previous tile
      combine_columns(states, all.scale, [&](unsigned column, State state) {
        for (unsigned to = 0; to < kClusterBlocks; ++to) store_in_block(&of_block[rank][column], to, state);
      });
      arrive_at_cluster_barrier();
      wait_at_cluster_barrier();
      for (unsigned column = threadIdx.x; column < kColumns; column += kBlockThreads) {
        State state = of_block[0][column];
        for (unsigned from = 1; from < kClusterBlocks; ++from)
          state = combine(state, of_block[from][column], all.scale.magnitude());
        combined[column] = state;
      }
      arrive_at_cluster_barrier();
      __syncthreads();
      share.write(all, tile, combined);
    }
    wait_at_cluster_barrier();
  }
#endif
};

}  // namespace hone
