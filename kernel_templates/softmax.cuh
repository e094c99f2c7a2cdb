// Softmax, or its logarithm, of each row of a matrix.
//
// The threads of a row are kGroup neighbouring lanes (1 … 32), with kRows rows at once; a block; or a cluster of
// blocks, which exchange partials through DSMEM. They hold it in registers or shared memory; what exceeds that is read
// twice. With chunks, a row has many blocks (row_chunks.cuh, row_pipeline.cuh, row_held.cuh).
//
// A grid-stride loop over rows. May be in place. The order of additions depends only on the shape, the grid and the
// pointers' alignment. Constraints: kBlockThreads is a power of two, at least a warp; kGroup one, at most a warp.
#pragma once

#include "combine.cuh"
#include "held_order.cuh"
#include "softmax_row.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads_>
struct Softmax {
  static constexpr unsigned kBlockThreads = kBlockThreads_;
  using Index = typename Types::Index;
  using State = typename Types::State;
  using Rows = SoftmaxRows<Types>;
  using Row = SoftmaxRow<Types, kBlockThreads>;
  using Results = SoftmaxResults<Types>;
  using Sums = SoftmaxSums<Types>;
  template <unsigned kThreads, unsigned kClusterBlocks = 1, Exchange kExchange = Exchange::barriers>
  using CombineRow = Combine<typename Types::Scale, kThreads, kClusterBlocks, Grid::none, true, Tail::warp, kExchange>;
  using CombineBlock = CombineRow<kBlockThreads>;
  using Arguments = typename Rows::Arguments;

  /// kPacks: packs of a row in a thread's registers.
  template <unsigned kGroup, unsigned kPacks, unsigned kRows>
  static __device__ void groups(const Arguments& arguments) {
    const Rows all{arguments};
    constexpr unsigned kGroups = kBlockThreads / kGroup;
    CombineRow<kGroup> combine(all.scale);
    const Index stride = static_cast<Index>(gridDim.x) * (kGroups * kRows);
    for (Index first = static_cast<Index>(blockIdx.x) * (kGroups * kRows); first < all.rows; first += stride) {
      const auto row = [&](unsigned r) {
        return all.template row<kGroup>(first + threadIdx.x / kGroup + r * kGroups, combine.rank());
      };
      RegisterShare<Types, kPacks> shares[kRows];
      State states[kRows];
      unrolled<kRows>([&](unsigned r) { shares[r].load(row(r), all.scale); });
      unrolled<kRows>([&](unsigned r) { states[r] = shares[r].sums(row(r), all.scale).state(0, all.scale); });
      unrolled<kRows>([&](unsigned r) { states[r] = combine.to_all(states[r]); });
      unrolled<kRows>([&](unsigned r) { shares[r].write(row(r), Results(&states[r], all.scale)); });
    }
  }

  /// One row per cluster of kClusterBlocks, 1 without clusters.
  template <unsigned kClusterBlocks, class Share>
  static __device__ void whole(const Rows& all, Share share) {
    CombineRow<kBlockThreads, kClusterBlocks> combine(all.scale);
    const unsigned thread = combine.rank();
    for (Index r = blockIdx.x / kClusterBlocks; r < all.rows; r += gridDim.x / kClusterBlocks) {
      const auto row = all.template row<kClusterBlocks * kBlockThreads>(r, thread);
      share.load(row, all.scale);
      const State state = combine.to_all(share.sums(row, all.scale).state(0, all.scale));
      share.write(row, Results(&state, all.scale));
    }
  }

  /// The same in the registers of a cluster: the first row is in flight while its blocks wait for each other.
  template <unsigned kClusterBlocks, unsigned kPacks>
  static __device__ void in_cluster(const Rows& all) {
    using CombineBlocks = CombineRow<kBlockThreads, kClusterBlocks, Exchange::receipts>;
    const Index first = blockIdx.x / kClusterBlocks, stride = gridDim.x / kClusterBlocks;
    const auto row = [&](Index r) {
      return all.template row<kClusterBlocks * kBlockThreads>(r, CombineBlocks::rank());
    };
    RegisterShare<Types, kPacks> share;
    pdl_release_then_wait();
    share.load(row(first), all.scale);
    CombineBlocks combine(all.scale);
    for (Index r = first; r < all.rows; r += stride) {
      const State state = combine.to_all(share.sums(row(r), all.scale).state(0, all.scale));
      share.write(row(r), Results(&state, all.scale));
      if (r + stride < all.rows) share.load(row(r + stride), all.scale);
    }
  }
  template <unsigned kClusterBlocks, unsigned kPacks>
  static __device__ void in_registers(const Arguments& arguments) {
    if constexpr (kClusterBlocks > 1) in_cluster<kClusterBlocks, kPacks>(Rows{arguments});
    else whole<1>(Rows{arguments}, RegisterShare<Types, kPacks>());
  }
  template <unsigned kClusterBlocks>
  static __device__ void in_shared(const Arguments& arguments) {
    whole<kClusterBlocks>(Rows{arguments}, SharedShare<Types, kBlockThreads>(arguments.packs_per_thread));
  }

  /// A thread adds up its packs of a chunk, and last the single element that it holds, whose load has time until then.
  struct PartSums : Sums {
    static_assert(Row::kOneSingle);
    typename Row::Single single;
  };

  static __device__ CombineBlock combine(const Rows& all) { return CombineBlock(all.scale); }

  /// The State of a chunk of a row, for row_chunks.cuh and row_pipeline.cuh.
  template <unsigned kTile>
  static __device__ State chunk_state(const Row& chunk, const Rows& all, CombineBlock& combine) {
    PartSums sums = sums_of_part(chunk, 0, all);
    add_packs<kTile>(sums, chunk, chunk.first, all.scale);
    return combine.to_all(state_of(sums, all));
  }

  /// The State of a row of `parts` chunks.
  static __device__ State row_state(const State* of_chunks, unsigned parts, const Rows& all, CombineBlock& combine) {
    return combine.to_all(combine_published(of_chunks, threadIdx.x, parts, kBlockThreads, 1, all.scale));
  }

  template <unsigned kTile>
  static __device__ void write_chunk(const Row& chunk, State state, const Rows& all) {
    const auto single = chunk.load_single();
    const Results results(&state, all.scale);
    write_packs<kTile>(results, chunk, chunk.first);
    chunk.write_singles(results, single);
  }

  // Parts of these, for row_held.cuh.
  using Op = typename Types::Scale;
  using InPack = typename Types::InPack;
  using Order = AnyOrder<Softmax>;

  static __device__ const Op& op(const Rows& all) { return all.scale; }

  static __device__ PartSums sums_of_part(const Row& part, unsigned, const Rows& all) {
    return {Sums(all.scale), part.load_single()};
  }
  static __device__ PartSums sums_of_chunks(const Row&, auto, const Rows& all) { return {Sums(all.scale), {}}; }
  template <unsigned kTile>
  static __device__ void add_held(Sums& sums, const auto& chunk, const Rows& all) {
    auto p = chunk.first;
    for (; chunk.after(p, kTile - 1) < chunk.end; p = chunk.after(p, kTile)) {
      InPack tile[kTile];
      unrolled<kTile>([&](unsigned u) { tile[u] = chunk.load(chunk.after(p, u)); });
      sums.template add<false>(tile, all.scale);
    }
    for (; p < chunk.end; p = chunk.after(p, 1)) {
      InPack tile[1] = {chunk.load(p)};
      sums.template add<false>(tile, all.scale);
    }
  }
  static __device__ State state_of(PartSums sums, const Rows& all) {
    if (sums.single.is_held) sums.add(convert<typename Types::Acc>(sums.single.element), all.scale);
    return sums.state(0, all.scale);
  }

  static __device__ Results results_of(State state, const Rows& all) { return Results(&state, all.scale); }
  template <unsigned kTile>
  static __device__ void write_held(const auto& chunk, const Results& results) {
    write_packs<kTile>(results, chunk, chunk.first);
  }
};

}  // namespace hone
