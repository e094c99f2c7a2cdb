// The share of a thread in a row of a softmax: packs that it holds in registers or in shared memory between the two
// passes, and the rest, which it reads twice.
//
// A thread reads no element that another thread writes, so softmax may be in place.
#pragma once

#include "softmax_pack_run.cuh"
#include "streaming.cuh"

namespace hone {

/// The launch's dynamic shared memory.
extern __shared__ __align__(16) unsigned char dynamic_smem[];

/// The share of one of kThreads threads in a row: kPacks packs are held in registers, all others are read twice.
template <class Types, unsigned kThreads, unsigned kPacks>
struct RegisterShare {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  using Ends = Singles<Types, kThreads>;
  using Rest = PackRun<Types, kThreads, (kPacks < 4 ? kPacks : 4)>;

  InPack held[kPacks];
  Acc origin;  ///< of kept weights, oriented

  __device__ void load(const Row<Types>& row, unsigned thread, const Scale& scale) {
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const Index p = thread + u * kThreads;
      held[u] = p < row.packs ? *row.pack(p) : neutral_pack<InPack>(scale);
    }
  }

  __device__ State state(const Row<Types>& row, unsigned thread, const Scale& scale) {
    Acc heaviest = heaviest_of(held, Ends::heaviest(row, thread, scale), scale);
    origin = scale.oriented(heaviest);
    const SoftmaxWeights<Acc> weights(heaviest, scale);
    Acc sums[kPacks];
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      if constexpr (Types::kKeepsWeights) {
#pragma unroll
        for (unsigned e = 0; e < Types::kElements; ++e) held[u].set(e, weights.of(held[u][e]));
        sums[u] = tree_sum<Types::kElements>(held[u].parts);
      } else {
        sums[u] = weights.sum_of(held[u]);
      }
    }
    Acc sum = tree_sum<kPacks>(sums) + Ends::sum(row, thread, weights);
    Rest::add(row, thread + static_cast<Index>(kPacks) * kThreads, row.packs, scale, heaviest, sum);
    return {scale.oriented(heaviest), sum};
  }

  __device__ void write(const Row<Types>& row, unsigned thread, State all, const Scale& scale) {
    const typename Types::Result result(all, scale);
    Rest::write(row, thread + static_cast<Index>(kPacks) * kThreads, row.packs, result);
    const Acc kept = rescaled_sum({origin, result.reciprocal}, all.largest, scale.magnitude());
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const Index p = thread + u * kThreads;
      if (p >= row.packs) continue;
      if constexpr (Types::kKeepsWeights) {
        typename Types::OutPack out;
#pragma unroll
        for (unsigned e = 0; e < Types::kElements; ++e)
          out.set(e, convert<typename Types::Out>(held[u][e] * kept));
        row.store(p, out);
      } else {
        row.store(p, Types::result_of(held[u], result));
      }
    }
    Ends::write(row, thread, result);
  }
};

/// The same with packs in dynamic shared memory: as many per thread as the launch has room for.
template <class Types, unsigned kThreads, unsigned kBlockThreads>
struct SharedShare {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  static constexpr unsigned kTile = 4;
  using Ends = Singles<Types, kThreads>;
  using Rest = PackRun<Types, kThreads, kTile>;

  InPack* held;     ///< this thread's packs, kBlockThreads apart
  unsigned room;    ///< packs a thread
  unsigned packs;   ///< held of this row
  Acc origin;

  __device__ explicit SharedShare(unsigned packs_per_thread) : room(packs_per_thread) {
    held = reinterpret_cast<InPack*>(dynamic_smem) + threadIdx.x;
  }

  __device__ Index first_of_rest(unsigned thread) const { return thread + static_cast<Index>(room) * kThreads; }

  __device__ void load(const Row<Types>& row, unsigned thread, const Scale& scale) {
    packs = 0;
    if (thread < row.packs) {
      const Index mine = (row.packs - thread - 1) / kThreads + 1;
      packs = mine < room ? static_cast<unsigned>(mine) : room;
    }
#pragma unroll 8
    for (unsigned k = 0; k < packs; ++k)
      copy_to_shared(held + k * kBlockThreads, row.pack(thread + static_cast<Index>(k) * kThreads));
    wait_for_copies();
  }

  __device__ void read_tile(InPack (&tile)[kTile], unsigned first, const Scale& scale) const {
#pragma unroll
    for (unsigned u = 0; u < kTile; ++u)
      tile[u] = first + u < packs ? held[(first + u) * kBlockThreads] : neutral_pack<InPack>(scale);
  }

  __device__ State state(const Row<Types>& row, unsigned thread, const Scale& scale) {
    InPack tile[kTile];
    Acc heaviest = Ends::heaviest(row, thread, scale);
    for (unsigned k = 0; k < packs; k += kTile) {
      read_tile(tile, k, scale);
      heaviest = heaviest_of(tile, heaviest, scale);
    }
    origin = scale.oriented(heaviest);
    const SoftmaxWeights<Acc> weights(heaviest, scale);
    Acc sum = Ends::sum(row, thread, weights);
    for (unsigned k = 0; k < packs; k += kTile) {
      read_tile(tile, k, scale);
      Acc sums[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u) {
        if constexpr (Types::kKeepsWeights) {
#pragma unroll
          for (unsigned e = 0; e < Types::kElements; ++e) tile[u].set(e, weights.of(tile[u][e]));
          sums[u] = tree_sum<Types::kElements>(tile[u].parts);
          if (k + u < packs) held[(k + u) * kBlockThreads] = tile[u];
        } else {
          sums[u] = weights.sum_of(tile[u]);
        }
      }
      sum += tree_sum<kTile>(sums);
    }
    Rest::add(row, first_of_rest(thread), row.packs, scale, heaviest, sum);
    return {scale.oriented(heaviest), sum};
  }

  __device__ void write(const Row<Types>& row, unsigned thread, State all, const Scale& scale) {
    const typename Types::Result result(all, scale);
    Rest::write(row, first_of_rest(thread), row.packs, result);
    const Acc kept = rescaled_sum({origin, result.reciprocal}, all.largest, scale.magnitude());
#pragma unroll 4
    for (unsigned k = 0; k < packs; ++k) {
      const InPack pack = held[k * kBlockThreads];
      const Index p = thread + static_cast<Index>(k) * kThreads;
      if constexpr (Types::kKeepsWeights) {
        typename Types::OutPack out;
#pragma unroll
        for (unsigned e = 0; e < Types::kElements; ++e)
          out.set(e, convert<typename Types::Out>(pack[e] * kept));
        row.store(p, out);
      } else {
        row.store(p, Types::result_of(pack, result));
      }
    }
    Ends::write(row, thread, result);
  }
};

}  // namespace hone
