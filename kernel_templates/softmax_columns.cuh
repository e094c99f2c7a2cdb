// Softmax, or its logarithm, over the middle extent of outer × reduced × inner: of each column of a matrix.
//
// A block, or a cluster of blocks, has a tile of kLanes packs of neighbouring columns; rows are interleaved over its
// threads. A thread holds kPacks rows of its columns in registers; all other rows are read twice. If many blocks share
// a tile, each has a chunk of its rows, in two launches as in softmax.cuh. May be in place.
//
// Constraints: kBlockThreads and kLanes are powers of two; packs are aligned in every row, and `inner` is whole packs.
#pragma once

#include "grid.cuh"
#include "softmax_shares.cuh"

namespace hone {

/// kElements: columns per pack.
template <class In, class Out, class Acc, bool kLog, unsigned kElements>
using ColumnTypes = SoftmaxPackTypes<In, Out, Acc, long long, kLog, kElements, kElements>;

/// A tile of neighbouring columns, and the rows first, first + stride, … < end of one thread in it.
template <class Types, unsigned kBlockThreads, unsigned kLanes>
struct SoftmaxColumnTile {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Sums = SoftmaxSums<Types>;
  using Scale = typename Types::Scale;
  using Arguments = SoftmaxColumnsArguments<typename Types::Acc>;
  static constexpr unsigned kElements = Types::kElements;
  static constexpr unsigned kColumns = kLanes * kElements;
  static constexpr unsigned kRowLanes = kBlockThreads / kLanes;  ///< threads per column
  static_assert(kBlockThreads % kLanes == 0 && kBlockThreads % 32 == 0);

  const Arguments& all;
  long long tile, first, end_row, stride;
  long long outer = tile / tiles_across(all);
  long long column = (tile - outer * tiles_across(all)) * kColumns + threadIdx.x % kLanes * kElements;
  /// This thread's pack in the first row.
  const In* in = static_cast<const In*>(all.in) + (outer * all.reduced * all.in_pitch + column);
  Out* out = static_cast<Out*>(all.out) + (outer * all.reduced * all.out_pitch + column);
  long long end = column < all.inner ? end_row : first;

  static __device__ long long tiles_across(const Arguments& all) { return (all.inner + kColumns - 1) / kColumns; }
  static __device__ long long tiles_of(const Arguments& all) { return all.outer * tiles_across(all); }

  __device__ long long after(long long row, unsigned k) const { return row + k * stride; }
  __device__ InPack load(long long row) const { return *reinterpret_cast<const InPack*>(in + row * all.in_pitch); }
  __device__ InPack load_again(long long row) const { return load(row); }
  __device__ void store(long long row, const OutPack& pack) const {
    store_streaming(reinterpret_cast<OutPack*>(out + row * all.out_pitch), pack);
  }

  /// Columns have no elements outside of packs.
  __device__ Sums start(const Scale& scale) const { return Sums(scale); }
  __device__ void add_singles(Sums&, const Scale&) const {}
  __device__ void write_singles(const SoftmaxResults<Types>&) const {}
};

template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kPacks>
struct SoftmaxColumns {
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  using Sums = SoftmaxSums<Types>;
  using Results = SoftmaxResults<Types>;
  using Share = RegisterShare<Types, kPacks>;
  using Tile = SoftmaxColumnTile<Types, kBlockThreads, kLanes>;
  using Arguments = typename Tile::Arguments;
  static constexpr unsigned kElements = Types::kElements, kColumns = Tile::kColumns, kRowLanes = Tile::kRowLanes;
  /// Partials of a column in shared memory: lanes of a warp that share the column are combined before, by shuffles.
  static constexpr unsigned kPartials = kLanes < kWarpThreads ? kBlockThreads / kWarpThreads : kRowLanes;

  /// The first of a thread's columns.
  static __device__ unsigned own_column() { return threadIdx.x % kLanes * kElements; }

  /// Combines the States of each column over the block, and calls use(column, state) in one thread per column.
  static __device__ void combine_columns(const Sums& sums, const Scale& scale, const auto& use) {
    __shared__ State partials[kPartials][kColumns];
    constexpr bool kSharesWarp = kLanes < kWarpThreads;
    const unsigned place = threadIdx.x / (kSharesWarp ? kWarpThreads : kLanes);
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) {
      State state = sums.state(e, scale);
      if constexpr (kSharesWarp) state = scale.template in_all_lanes<kWarpThreads, kLanes>(state);
      if (!kSharesWarp || threadIdx.x % kWarpThreads < kLanes) partials[place][own_column() + e] = state;
    }
    __syncthreads();
    for_columns<kPartials>(partials, scale, use);
  }

  /// Calls use(column, state) with the combination of each column's partials.
  template <unsigned kCount>
  static __device__ void for_columns(const State (&partials)[kCount][kColumns], const Scale& scale, const auto& use) {
    for (unsigned column = threadIdx.x; column < kColumns; column += kBlockThreads) {
      State state = partials[0][column];
      for (unsigned i = 1; i < kCount; ++i) state = scale.combine(state, partials[i][column]);
      use(column, state);
    }
  }

  /// One tile per cluster of kClusterBlocks, 1 without clusters.
  template <unsigned kClusterBlocks>
  static __device__ void whole(const Arguments& all) {
    const Scale scale(all.scale);
    __shared__ State combined[kColumns];
    constexpr bool kIsCluster = kClusterBlocks > 1;
    const auto keep = [&](unsigned column, State state) { combined[column] = state; };
    if constexpr (kIsCluster) arrive_at_cluster_barrier();
    pdl_release_then_wait();
    unsigned rank = 0;
    if constexpr (kIsCluster) rank = rank_in_cluster();
    const long long tiles = Tile::tiles_of(all);
    for (long long i = blockIdx.x / kClusterBlocks; i < tiles; i += gridDim.x / kClusterBlocks) {
      const Tile tile{all, i, rank * kRowLanes + threadIdx.x / kLanes, all.reduced, kRowLanes * kClusterBlocks};
      Share share;
      share.load(tile, scale);
      const Sums sums = share.sums(tile, scale);
      if constexpr (kIsCluster) {
        __shared__ State of_block[kClusterBlocks][kColumns];
        wait_at_cluster_barrier();  // every block has started, and has read the partials of the previous tile
        combine_columns(sums, scale, [&](unsigned column, State state) {
          for (unsigned to = 0; to < kClusterBlocks; ++to) store_in_block(&of_block[rank][column], to, state);
        });
        arrive_at_cluster_barrier();
        wait_at_cluster_barrier();
        for_columns<kClusterBlocks>(of_block, scale, keep);
        arrive_at_cluster_barrier();
      } else {
        combine_columns(sums, scale, keep);
      }
      __syncthreads();
      share.write(tile, Results(combined + own_column(), scale));
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
      act(Tile{all, tile, first + threadIdx.x / kLanes, end, kRowLanes},
          partials_in<State>(all.workspace) + tile * all.chunks * kColumns, chunk);
    }
  }

  static __device__ void publish_chunks(const Arguments& all) {
    const Scale scale(all.scale);
    pdl_release_then_wait();
    for_chunks<false>(all, [&](const Tile& tile, State* partials, unsigned chunk) {
      Sums sums(scale);
      add_packs<Share::kTile>(sums, tile, tile.first, scale);
      partials += chunk * kColumns;
      combine_columns(sums, scale, [&](unsigned column, State state) { partials[column] = state; });
      __syncthreads();  // before the partials in shared memory are overwritten
    });
  }

  static __device__ void write_chunks(const Arguments& all) {
    const Scale scale(all.scale);
    __shared__ State combined[kColumns];
    pdl_release_then_wait();
    for_chunks<true>(all, [&](const Tile& tile, const State* partials, unsigned) {
      partials += own_column();
      Sums sums(scale);
      for (unsigned chunk = threadIdx.x / kLanes; chunk < all.chunks; chunk += kRowLanes) {
        const State* const of_chunk = partials + chunk * kColumns;
        const Array<State, kElements> states([&](unsigned e) { return load_from_l2(of_chunk + e); });
#pragma unroll
        for (unsigned e = 0; e < kElements; ++e) sums.add(e, states.values[e], scale);
      }
      combine_columns(sums, scale, [&](unsigned column, State state) { combined[column] = state; });
      __syncthreads();
      write_packs<Share::kTile>(Results(combined + own_column(), scale), tile, tile.first);
    });
  }
};

}  // namespace hone
