// How a group of warps writes chunks of a row for canonical_softmax_held.cuh.
#pragma once

#include "canonical_softmax_ops.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads>
struct CanonicalHeldWrite {
  static constexpr unsigned kPack = Types::kPack;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;

  /// Writes a thread's packs of a chunk, up to kTile at once. Results that are not in step are written one by one.
  template <unsigned kTile>
  static __device__ void packs(const auto& chunk, const auto& weight, const SoftmaxNorm<Acc>& norm) {
    Index p = chunk.first;
    if (!chunk.is_in_step()) {
#pragma unroll 1
      for (; p < chunk.end; p += kBlockThreads) {
        InPack one[1] = {chunk.load(p)};
        weight.powers.turn(one);
        const OutPack results = weight.results(one[0], norm);
        unrolled<kPack>([&](unsigned e) { chunk.results()[p * kPack + e] = results[e]; });
      }
      return;
    }
    tiles<kTile>(chunk, p, weight, norm);
  }

 private:
  /// As many packs at once as there are, up to kTile.
  template <unsigned kTile>
  static __device__ void tiles(const auto& chunk, Index p, const auto& weight, const SoftmaxNorm<Acc>& norm) {
    for (; p + (kTile - 1) * kBlockThreads < chunk.end; p += kTile * kBlockThreads)
      tile<kTile>(chunk, p, weight, norm);
    if constexpr (kTile > 1) tiles<kTile / 2>(chunk, p, weight, norm);
  }

  template <unsigned kPacks>
  static __device__ void tile(const auto& chunk, Index p, const auto& weight, const SoftmaxNorm<Acc>& norm) {
    InPack some[kPacks];
    unrolled<kPacks>([&](unsigned u) { some[u] = chunk.load(p + u * kBlockThreads); });
    weight.powers.turn(some);
    OutPack* const to = reinterpret_cast<OutPack*>(chunk.results()) + p;
    unrolled<kPacks>([&](unsigned u) { store_streaming(to + u * kBlockThreads, weight.results(some[u], norm)); });
  }
};

}  // namespace hone
