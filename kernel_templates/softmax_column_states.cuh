// The columns of a thread in softmax_columns.cuh: largest element and sum of weights of each column of a pack.
#pragma once

#include "softmax_math.cuh"

namespace hone {

/// In_ … kLog_ as in SoftmaxTypes; kElements_: columns per pack.
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

/// The State of each column of a thread's pack.
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

  /// Updates the heaviest elements by those of some packs, and rescales the sums.
  template <unsigned kPacks>
  __device__ void update_heaviest(const InPack (&tile)[kPacks], const Scale& scale) {
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

  /// Adds the weights of some packs; with kKeep the weights replace the elements.
  template <bool kKeep, unsigned kPacks>
  __device__ void add(InPack (&tile)[kPacks], const Scale& scale) {
    update_heaviest(tile, scale);
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

}  // namespace hone
