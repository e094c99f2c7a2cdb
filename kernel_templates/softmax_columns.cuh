// Softmax, or its logarithm, over the middle extent of outer × reduced × inner: of each column of a matrix.
//
// A block, or a cluster of blocks, has a tile of kLanes packs of neighbouring columns; rows are interleaved over its
// threads. A thread holds kPacks rows of its columns in registers; all other rows are read twice. If many blocks share
// a tile, each has a chunk of its rows, in two launches as in softmax.cuh. May be in place.
//
// Constraints: kBlockThreads and kLanes are powers of two. Packs are aligned in every row, and `inner` is whole packs;
// or, with Types::kPhaseMatched, rows begin anywhere, and the threads of a column are a multiple of the elements of a
// pack.
#pragma once

#include "grid.cuh"
#include "softmax_column_tiles.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kPacks>
struct SoftmaxColumns {
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  using Sums = SoftmaxSums<Types>;
  using Results = SoftmaxResults<Types>;
  using Share = RegisterShare<Types, kPacks>;
  using Tile = SoftmaxColumnTile<Types, kBlockThreads, kLanes>;
  using Arguments = typename Tile::Arguments;
  static constexpr unsigned kElements = Types::kElements, kColumns = Tile::kColumns, kSlots = Tile::kSlots;
  static constexpr unsigned kRowLanes = kBlockThreads / kLanes;  ///< threads per column
  static_assert(kBlockThreads % kLanes == 0 && kBlockThreads % kWarpThreads == 0);
  /// Partials of a column in shared memory: lanes of a warp that share the column are combined before, by shuffles.
  static constexpr unsigned kPartials = kLanes < kWarpThreads ? kBlockThreads / kWarpThreads : kRowLanes;

  /// Combines the States of each column over the block, and calls use(slot, state) in one thread per column of the
  /// tile. The first of a thread's sums belongs to the column at `slot`.
  static __device__ void combine_columns(const Sums& sums, unsigned slot, const Scale& scale, const auto& use) {
    __shared__ State partials[kPartials][kSlots];
    constexpr bool kSharesWarp = kLanes < kWarpThreads;
    const unsigned place = threadIdx.x / (kSharesWarp ? kWarpThreads : kLanes);
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) {
      State state = sums.state(e, scale);
      if constexpr (kSharesWarp) state = scale.template in_all_lanes<kWarpThreads, kLanes>(state);
      if (!kSharesWarp || threadIdx.x % kWarpThreads < kLanes) partials[place][slot + e] = state;
    }
    __syncthreads();
    for_columns<kPartials>(partials, scale, use);
  }

  /// Calls use(slot, state) with the combination of each column's partials.
  template <unsigned kCount>
  static __device__ void for_columns(const State (&partials)[kCount][kSlots], const Scale& scale, const auto& use) {
    for (unsigned column = threadIdx.x; column < kColumns; column += kBlockThreads) {
      const unsigned slot = Tile::kFirstSlot + column;
      State state = partials[0][slot];
      for (unsigned i = 1; i < kCount; ++i) state = scale.combine(state, partials[i][slot]);
      use(slot, state);
    }
  }

  /// One tile per cluster of kClusterBlocks, 1 without clusters.
  template <unsigned kClusterBlocks>
  static __device__ void whole(const Arguments& all) {
    const Scale scale(all.scale);
    __shared__ State combined[kSlots];
    constexpr bool kIsCluster = kClusterBlocks > 1;
    static_assert(!Types::kPhaseMatched || kRowLanes * kClusterBlocks % kElements == 0);
    const auto keep = [&](unsigned slot, State state) { combined[slot] = state; };
    if constexpr (kIsCluster) arrive_at_cluster_barrier();
    pdl_release_then_wait();
    unsigned rank = 0;
    if constexpr (kIsCluster) rank = rank_in_cluster();
    const long long tiles = Tile::tiles_of(all);
    for (long long i = blockIdx.x / kClusterBlocks; i < tiles; i += gridDim.x / kClusterBlocks) {
      const Tile tile{all, i, rank * kRowLanes + Tile::row_lane(), all.reduced, kRowLanes * kClusterBlocks};
      Share share;
      share.load(tile, scale);
      const Sums sums = share.sums(tile, scale);
      if constexpr (kIsCluster) {
        __shared__ State of_block[kClusterBlocks][kSlots];
        wait_at_cluster_barrier();  // every block has started, and has read the partials of the previous tile
        combine_columns(sums, tile.slot(), scale, [&](unsigned slot, State state) {
          for (unsigned to = 0; to < kClusterBlocks; ++to) store_in_block(&of_block[rank][slot], to, state);
        });
        arrive_at_cluster_barrier();
        wait_at_cluster_barrier();
        for_columns<kClusterBlocks>(of_block, scale, keep);
        arrive_at_cluster_barrier();
      } else {
        combine_columns(sums, tile.slot(), scale, keep);
      }
      __syncthreads();
      share.write(tile, Results(combined + tile.slot(), scale));
    }
    if constexpr (kIsCluster) wait_at_cluster_barrier();
  }

  /// Calls act(tile, partials of the tile, chunk) for each chunk of the rows of each tile, in order or reversed.
  template <bool kReversed>
  static __device__ void for_chunks(const Arguments& all, const auto& act) {
    const long long items = Tile::tiles_of(all) * all.chunks;
    const long long rows = (all.reduced + all.chunks - 1) / all.chunks;
    for (long long i = blockIdx.x; i < items; i += gridDim.x) {
      const long long item = kReversed ? items - 1 - i : i;
      const long long tile = item / all.chunks;
      const auto chunk = static_cast<unsigned>(item - tile * all.chunks);
      const long long first = chunk * rows;
      const long long end = first + rows < all.reduced ? first + rows : all.reduced;
      act(Tile{all, tile, first + Tile::row_lane(), end, kRowLanes},
          partials_in<State>(all.workspace) + tile * all.chunks * kColumns, chunk);
    }
  }

  static __device__ void publish_chunks(const Arguments& all) {
    const Scale scale(all.scale);
    pdl_release_then_wait();
    for_chunks<false>(all, [&](const Tile& tile, State* partials, unsigned chunk) {
      Sums sums(scale);
      add_packs<Share::kTile>(sums, tile, tile.first, scale);
      tile.add_singles(sums, scale, tile.load_single());
      partials += chunk * kColumns;
      combine_columns(sums, tile.slot(), scale,
                      [&](unsigned slot, State state) { partials[slot - Tile::kFirstSlot] = state; });
      __syncthreads();  // before the partials in shared memory are overwritten
    });
  }

  static __device__ void write_chunks(const Arguments& all) {
    const Scale scale(all.scale);
    __shared__ State combined[kSlots];
    pdl_release_then_wait();
    for_chunks<true>(all, [&](const Tile& tile, const State* partials, unsigned) {
      // Partials have the same places in every chunk: a lane's are those of whole packs of the tile.
      const unsigned column = threadIdx.x % kLanes * kElements;
      partials += column;
      Sums sums(scale);
      for (unsigned chunk = threadIdx.x / kLanes; column < kColumns && chunk < all.chunks; chunk += kRowLanes) {
        const State* const of_chunk = partials + chunk * kColumns;
        const Array<State, kElements> states([&](unsigned e) { return load_from_l2(of_chunk + e); });
#pragma unroll
        for (unsigned e = 0; e < kElements; ++e) sums.add(e, states.values[e], scale);
      }
      combine_columns(sums, Tile::kFirstSlot + column, scale,
                      [&](unsigned slot, State state) { combined[slot] = state; });
      __syncthreads();
      const Results results(combined + tile.slot(), scale);
      write_packs<Share::kTile>(results, tile, tile.first);
      tile.write_singles(results, tile.load_single());
    });
  }
};

}  // namespace hone
