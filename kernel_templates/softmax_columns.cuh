// Softmax, or its logarithm, over the middle extent of outer × reduced × inner: of each column of a matrix.
//
// A block works on a tile of kLanes packs of neighbouring columns; its threads form kLanes lanes times as many
// row-lanes as remain, which share the rows. What a thread holds of its columns is in registers; all other rows are
// read twice. Largest elements and sums of a column meet in shared memory, in that of all blocks of a cluster, or, in
// two launches, in the workspace, where many blocks share the rows of a column:
//
//   block      one block a tile
//   cluster    the rows of a tile are shared by all blocks of a cluster
//   chunks     by many blocks, in two launches: the first finds largest elements and sums of a chunk of the rows, the
//              second combines all chunks of its columns, reads its own again and writes it
//
// Input and output may be the same memory. Constraints: kBlockThreads and kLanes are powers of two; packs of columns
// are aligned in every row, and `inner` is a multiple of them.
#pragma once

#include "grid.cuh"
#include "softmax_row.cuh"

namespace hone {

/// In_ … kLog_ as SoftmaxTypes; kElements_: columns of a pack.
template <class In_, class Out_, class Acc_, bool kLog_, unsigned kElements_>
struct ColumnTypes {
  using In = In_;
  using Out = Out_;
  using Acc = Acc_;
  static constexpr bool kLog = kLog_;
  static constexpr unsigned kElements = kElements_;
  using InPack = Pack<In, kElements>;
  using OutPack = Pack<Out, kElements>;
  using State = SoftmaxState<Acc>;
  using Scale = SoftmaxScale<Acc>;
  static constexpr bool kKeepsWeights = !kLog && kSame<In, Acc>;
};

/// The array of a call. A pitch is the distance, in elements, from one row of `inner` elements to the next.
template <class Types>
struct SoftmaxArray {
  const typename Types::In* in;
  typename Types::Out* out;
  long long outer, reduced, inner;
  long long in_pitch, out_pitch;
  typename Types::Scale scale;
};

/// What a thread has found of the columns of its pack.
template <class Types>
struct ColumnStates {
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using Scale = typename Types::Scale;
  static constexpr unsigned kElements = Types::kElements;

  Acc heaviest[kElements];
  Acc sum[kElements];

  __device__ explicit ColumnStates(const Scale& scale) {
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) {
      heaviest[e] = scale.neutral();
      sum[e] = Acc(0);
    }
  }

  /// Lets the heaviest elements of some packs count.
  template <unsigned kPacks>
  __device__ void weigh(const InPack (&tile)[kPacks], const Scale& scale) {
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) {
      Acc now = heaviest[e];
#pragma unroll
      for (unsigned u = 0; u < kPacks; ++u) {
        const Acc x = convert<Acc>(tile[u][e]);
        now = scale.descends() ? smaller<true>(now, x) : larger<true>(now, x);
      }
      if (now == heaviest[e]) continue;
      sum[e] = rescaled_sum({scale.oriented(heaviest[e]), sum[e]}, scale.oriented(now), scale.magnitude());
      heaviest[e] = now;
    }
  }

  /// Adds the weights of some packs, which take the places of their elements where they fit.
  template <bool kKeep, unsigned kPacks>
  __device__ void add(InPack (&tile)[kPacks], const Scale& scale) {
    weigh(tile, scale);
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) {
      const SoftmaxWeights<Acc> weights(heaviest[e], scale);
      Acc values[kPacks];
#pragma unroll
      for (unsigned u = 0; u < kPacks; ++u) {
        values[u] = weights.of(convert<Acc>(tile[u][e]));
        if constexpr (kKeep) tile[u].set(e, values[u]);
      }
      sum[e] += tree_sum<kPacks>(values);
    }
  }

  __device__ SoftmaxState<Acc> oriented(unsigned e, const Scale& scale) const {
    return {scale.oriented(heaviest[e]), sum[e]};
  }

  __device__ void combine_with(unsigned e, SoftmaxState<Acc> other, const Scale& scale) {
    const SoftmaxState<Acc> both = combine(oriented(e, scale), other, scale.magnitude());
    heaviest[e] = scale.oriented(both.largest);
    sum[e] = both.sum;
  }
};

template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kPacks>
struct SoftmaxColumns {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  using Array = SoftmaxArray<Types>;
  using States = ColumnStates<Types>;
  using Result = SoftmaxResult<Acc, Types::kLog>;

  static constexpr unsigned kElements = Types::kElements;
  static constexpr unsigned kColumns = kLanes * kElements;  ///< of a tile
  static constexpr unsigned kRowLanes = kBlockThreads / kLanes;
  /// Partial states of a column in shared memory: lanes of a warp that share it have combined theirs.
  static constexpr unsigned kMeeting = kLanes < 32 ? kBlockThreads / 32 : kRowLanes;
  static constexpr unsigned kTile = kPacks < 4 ? kPacks : 4;
  static_assert(kBlockThreads % kLanes == 0 && kBlockThreads % 32 == 0);

  /// A tile of columns, and the rows of it that are one block's.
  struct Tile {
    const In* in;  ///< this thread's pack in the first row
    Out* out;
    long long first, end;  ///< this thread's rows: every stride-th
    long long stride;
    bool has_columns;

    __device__ Tile(const Array& all, long long tile, long long first_row, long long end_row, long long stride_) {
      const long long tiles = (all.inner + kColumns - 1) / kColumns;
      const long long outer = tile / tiles;
      const long long column = (tile - outer * tiles) * kColumns + threadIdx.x % kLanes * kElements;
      has_columns = column < all.inner;
      in = all.in + outer * all.reduced * all.in_pitch + column;
      out = all.out + outer * all.reduced * all.out_pitch + column;
      first = first_row;
      end = has_columns ? end_row : first_row;
      stride = stride_;
    }

    __device__ InPack load(const Array& all, long long row) const {
      return *reinterpret_cast<const InPack*>(in + row * all.in_pitch);
    }
    __device__ void store(const Array& all, long long row, const OutPack& pack) const {
      store_streaming(reinterpret_cast<OutPack*>(out + row * all.out_pitch), pack);
    }
  };

  static __device__ long long tiles_of(const Array& all) { return all.outer * ((all.inner + kColumns - 1) / kColumns); }

  static __device__ void add_rows(const Array& all, const Tile& tile, long long first, States& states) {
    for (long long row = first; row < tile.end; row += kTile * tile.stride) {
      InPack packs[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        packs[u] =
            row + u * tile.stride < tile.end ? tile.load(all, row + u * tile.stride) : neutral_pack<InPack>(all.scale);
      states.template add<false>(packs, all.scale);
    }
  }

  /// What turns elements of this thread's columns into results.
  struct Results {
    Result of[kElements];

    __device__ OutPack operator()(const InPack& pack) const {
      OutPack out;
#pragma unroll
      for (unsigned e = 0; e < kElements; ++e) out.set(e, convert<Out>(of[e].of(convert<Acc>(pack[e]))));
      return out;
    }
  };

  /// The last ones first: these are the most likely to be in a cache still.
  static __device__ void write_rows(const Array& all, const Tile& tile, long long first, const Results& results) {
    if (first >= tile.end) return;
    const long long step = kTile * tile.stride;
    for (long long row = first + (tile.end - first - 1) / step * step; row >= first; row -= step) {
      InPack packs[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        if (row + u * tile.stride < tile.end) packs[u] = tile.load(all, row + u * tile.stride);
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        if (row + u * tile.stride < tile.end) tile.store(all, row + u * tile.stride, results(packs[u]));
    }
  }

  /// A thread's share of a tile: kPacks rows in registers, and all others twice.
  struct Share {
    InPack held[kPacks];
    Acc origins[kElements];  ///< what kept weights are relative to, oriented

    __device__ void load(const Array& all, const Tile& tile) {
#pragma unroll
      for (unsigned u = 0; u < kPacks; ++u) {
        const long long row = tile.first + u * tile.stride;
        held[u] = row < tile.end ? tile.load(all, row) : neutral_pack<InPack>(all.scale);
      }
    }

    __device__ void add_to(States& states, const Array& all, const Tile& tile) {
      states.template add<Types::kKeepsWeights>(held, all.scale);
#pragma unroll
      for (unsigned e = 0; e < kElements; ++e) origins[e] = all.scale.oriented(states.heaviest[e]);
      add_rows(all, tile, tile.first + kPacks * tile.stride, states);
    }

    __device__ void write(const Array& all, const Tile& tile, const State* found) const {
      const Results results = results_of(found, all.scale);
      write_rows(all, tile, tile.first + kPacks * tile.stride, results);
      Acc kept[kElements];
#pragma unroll
      for (unsigned e = 0; e < kElements; ++e)
        kept[e] = rescaled_sum({origins[e], results.of[e].reciprocal},
                               all.scale.oriented(results.of[e].weights.half_origin * Acc(2)), all.scale.magnitude());
#pragma unroll
      for (unsigned u = 0; u < kPacks; ++u) {
        const long long row = tile.first + u * tile.stride;
        if (row >= tile.end) continue;
        if constexpr (Types::kKeepsWeights) {
          OutPack out;
#pragma unroll
          for (unsigned e = 0; e < kElements; ++e) out.set(e, convert<Out>(held[u][e] * kept[e]));
          tile.store(all, row, out);
        } else {
          tile.store(all, row, results(held[u]));
        }
      }
    }
  };

  static __device__ Results results_of(const State* found, const Scale& scale) {
    Results results;
#pragma unroll
    for (unsigned e = 0; e < kElements; ++e) results.of[e] = Result(found[threadIdx.x % kLanes * kElements + e], scale);
    return results;
  }

  /// Calls use(column, state) with what the block has found of each column of its tile, in one thread for each.
  template <class Use>
  static __device__ void meet(const States& states, const Scale& scale, Use use) {
    __shared__ State meeting[kMeeting][kColumns];
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
      if (kLanes >= 32 || threadIdx.x % 32 < kLanes) meeting[place][lane * kElements + e] = state;
    }
    __syncthreads();
    for (unsigned column = threadIdx.x; column < kColumns; column += kBlockThreads) {
      State all = meeting[0][column];
      for (unsigned i = 1; i < kMeeting; ++i) all = combine(all, meeting[i][column], scale.magnitude());
      use(column, all);
    }
  }

  static __device__ void block(const Array& all) {
    __shared__ State found[kColumns];
    pdl_release_then_wait();
    const long long tiles = tiles_of(all);
    for (long long i = blockIdx.x; i < tiles; i += gridDim.x) {
      const Tile tile(all, i, threadIdx.x / kLanes, all.reduced, kRowLanes);
      Share share;
      States states(all.scale);
      share.load(all, tile);
      share.add_to(states, all, tile);
      meet(states, all.scale, [&](unsigned column, State state) { found[column] = state; });
      __syncthreads();
      share.write(all, tile, found);
    }
  }

  static __device__ State* partials_of(void* workspace, long long tile, unsigned chunks) {
    return partials_in<State>(workspace) + tile * chunks * kColumns;
  }

  /// The rows of one of `chunks` chunks of a tile, for one block.
  static __device__ Tile chunk_of(const Array& all, long long tile, unsigned chunk, unsigned chunks) {
    const long long each = (all.reduced + chunks - 1) / chunks;
    const long long first = chunk * each;
    const long long end = first + each < all.reduced ? first + each : all.reduced;
    return {all, tile, first + threadIdx.x / kLanes, end, kRowLanes};
  }

  static __device__ void publish_chunks(const Array& all, unsigned chunks, void* workspace) {
    pdl_release_then_wait();
    const long long items = tiles_of(all) * chunks;
    for (long long item = blockIdx.x; item < items; item += gridDim.x) {
      const long long at = item / chunks;
      const auto chunk = static_cast<unsigned>(item - at * chunks);
      const Tile tile = chunk_of(all, at, chunk, chunks);
      States states(all.scale);
      add_rows(all, tile, tile.first, states);
      State* const partials = partials_of(workspace, at, chunks) + chunk * kColumns;
      meet(states, all.scale, [&](unsigned column, State state) { partials[column] = state; });
      __syncthreads();  // the states in shared memory have been read
    }
  }

  /// Backwards: what was read last may be in the cache still.
  static __device__ void write_chunks(const Array& all, unsigned chunks, void* workspace) {
    __shared__ State found[kColumns];
    pdl_release_then_wait();
    const long long items = tiles_of(all) * chunks;
    for (long long i = blockIdx.x; i < items; i += gridDim.x) {
      const long long item = items - 1 - i;
      const long long at = item / chunks;
      const Tile tile = chunk_of(all, at, static_cast<unsigned>(item - at * chunks), chunks);
      const State* const partials = partials_of(workspace, at, chunks) + threadIdx.x % kLanes * kElements;
      States states(all.scale);
      for (unsigned chunk = threadIdx.x / kLanes; chunk < chunks; chunk += kRowLanes) {
#pragma unroll
        for (unsigned e = 0; e < kElements; ++e)
          states.combine_with(e, load_from_l2(partials + chunk * kColumns + e), all.scale);
      }
      meet(states, all.scale, [&](unsigned column, State state) { found[column] = state; });
      __syncthreads();
      write_rows(all, tile, tile.first, results_of(found, all.scale));
    }
  }

#ifndef HONE_HOST_DEVICE
  template <unsigned kClusterBlocks>
  static __device__ void cluster(const Array& all) {
    __shared__ State of_block[kClusterBlocks][kColumns];
    __shared__ State found[kColumns];
    arrive_at_cluster_barrier();
    pdl_release_then_wait();
    const unsigned rank = rank_in_cluster();
    const long long tiles = tiles_of(all);
    for (long long i = blockIdx.x / kClusterBlocks; i < tiles; i += gridDim.x / kClusterBlocks) {
      const Tile tile(all, i, rank * kRowLanes + threadIdx.x / kLanes, all.reduced, kRowLanes * kClusterBlocks);
      Share share;
      States states(all.scale);
      share.load(all, tile);
      share.add_to(states, all, tile);
      wait_at_cluster_barrier();  // every block has started, and has read what it got for the tile before
      meet(states, all.scale, [&](unsigned column, State state) {
        for (unsigned to = 0; to < kClusterBlocks; ++to) store_in_block(&of_block[rank][column], to, state);
      });
      arrive_at_cluster_barrier();
      wait_at_cluster_barrier();
      for (unsigned column = threadIdx.x; column < kColumns; column += kBlockThreads) {
        State state = of_block[0][column];
        for (unsigned from = 1; from < kClusterBlocks; ++from)
          state = combine(state, of_block[from][column], all.scale.magnitude());
        found[column] = state;
      }
      arrive_at_cluster_barrier();
      __syncthreads();
      share.write(all, tile, found);
    }
    wait_at_cluster_barrier();
  }
#endif
};

}  // namespace hone
