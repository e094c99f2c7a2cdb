// The elements of a row that a thread does not hold but reads twice: packs beyond its registers or shared memory, and
// single elements.
#pragma once

#include "softmax_row.cuh"
#include "streaming.cuh"

namespace hone {

/// The loop of a thread over packs that it does not hold: every kThreads-th pack, kTile loads in flight.
template <class Types, unsigned kThreads, unsigned kTile>
struct PackRun {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using InPack = typename Types::InPack;
  using Scale = typename Types::Scale;
  static constexpr Index kStep = static_cast<Index>(kTile) * kThreads;

  /// Adds the packs [first, end) to the thread's State (online softmax): the weights in `sum` are relative to
  /// `heaviest`.
  static __device__ void add(const Row<Types>& row, Index first, Index end, const Scale& scale, Acc& heaviest,
                             Acc& sum) {
    for (Index p = first; p < end; p += kStep) {
      InPack tile[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        tile[u] = p + u * kThreads < end ? *row.pack(p + u * kThreads) : neutral_pack<InPack>(scale);
      const Acc now = heaviest_of(tile, heaviest, scale);
      if (now != heaviest) {
        sum = rescaled_sum({scale.oriented(heaviest), sum}, scale.oriented(now), scale.magnitude());
        heaviest = now;
      }
      const SoftmaxWeights<Acc> weights(heaviest, scale);
      Acc sums[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u) sums[u] = weights.sum_of(tile[u]);
      sum += tree_sum<kTile>(sums);
    }
  }

  /// Reads the packs again and writes their results, in reverse order: the last ones are most likely still in cache.
  static __device__ void write(const Row<Types>& row, Index first, Index end, const typename Types::Result& result) {
    if (first >= end) return;
    for (Index p = first + (end - first - 1) / kStep * kStep;; p -= kStep) {
      InPack tile[kTile];
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        if (p + u * kThreads < end) tile[u] = load_streaming(row.pack(p + u * kThreads));
#pragma unroll
      for (unsigned u = 0; u < kTile; ++u)
        if (p + u * kThreads < end) row.store(p + u * kThreads, Types::result_of(tile[u], result));
      if (p == first) return;
    }
  }
};

/// The single elements of a row, for one of kThreads threads. There are few, and none in most rows, so they are not
/// held but loaded again, always by the thread that writes them in the end.
template <class Types, unsigned kThreads>
struct Singles {
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;

  static __device__ Acc load(const Row<Types>& row, Index i) { return convert<Acc>(row.in[row.single(i)]); }

  static __device__ Acc heaviest(const Row<Types>& row, unsigned thread, const typename Types::Scale& scale) {
    Acc heaviest = scale.neutral();
#pragma unroll 1
    for (Index i = thread; i < row.singles; i += kThreads)
      heaviest = scale.descends() ? smaller<true>(heaviest, load(row, i)) : larger<true>(heaviest, load(row, i));
    return heaviest;
  }

  static __device__ Acc sum(const Row<Types>& row, unsigned thread, const SoftmaxWeights<Acc>& weights) {
    Acc sum(0);
#pragma unroll 1
    for (Index i = thread; i < row.singles; i += kThreads) sum += weights.of(load(row, i));
    return sum;
  }

  static __device__ void write(const Row<Types>& row, unsigned thread, const typename Types::Result& result) {
#pragma unroll 1
    for (Index i = thread; i < row.singles; i += kThreads)
      row.out[row.single(i)] = convert<typename Types::Out>(result.of(load(row, i)));
  }
};

}  // namespace hone
