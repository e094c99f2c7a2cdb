// HeldChunk: the part of a row that a lane holds in registers for canonical_softmax.cuh.
#pragma once

#include "canonical_softmax_ops.cuh"

namespace hone {

/// The elements of a chunk, or of a shorter row, that a lane holds: packs u < kUnroll, those of kLanes lanes side by
/// side. Elements that are not there have the weight 0, which is as good as −0 beside the heaviest one's.
template <class Types, unsigned kLanes, unsigned kUnroll>
struct HeldChunk {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kPack = Types::kPack;

  Acc kept[kUnroll][kPack];  ///< elements, then their weights, or their exponents for the logarithm

  /// The number of the first element of pack u; `columns` from the beginning of the chunk on are there.
  static __device__ unsigned number(unsigned u) { return (u * kLanes + threadIdx.x % kLanes) * kPack; }

  __device__ void load(const In* chunk, unsigned columns, Acc factor) {
    InPack packs[kUnroll];
    const In weightless = convert<In>(factor < Acc(0) ? highest<Acc>() : lowest<Acc>());
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (number(u) + kPack <= columns) packs[u] = *reinterpret_cast<const InPack*>(chunk + number(u));
      else packs[u] = singles(chunk, number(u), columns, weightless);
    }
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u)
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) kept[u][e] = convert<Acc>(packs[u][e]);
  }

  __device__ Acc heaviest(Acc factor) const {
    return factor < Acc(0) ? -extreme_of_kept<false>() : extreme_of_kept<true>();
  }

  /// The leaves of the tree, folded as far as they are in one lane.
  __device__ void weigh(Acc (&values)[kPack], const Weight& weight) {
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e)
      values[e] = fold_leaves<CanonicalSum<Acc>, kUnroll>([&](unsigned u) {
        const Acc exponent = weight.exponent(kept[u][e]), leaf = canonical_exponential_of_number(exponent);
        kept[u][e] = Types::kLog ? exponent : leaf;
        return leaf;
      });
  }

  __device__ void store(Out* chunk, unsigned columns, const Weight& weight, Acc divisor) const {
    if (weight.is_nan) write(chunk, columns, [](unsigned, unsigned) { return canonical_nan<Out>(); });
    else write(chunk, columns, [&](unsigned u, unsigned e) { return weight.of_kept(kept[u][e], divisor); });
  }

 private:
  template <bool kLargest>
  __device__ Acc extreme_of_kept() const {
    Acc most = kept[0][0];
#pragma unroll
    for (unsigned i = 1; i < kUnroll * kPack; ++i) most = extreme<kLargest, false>(most, kept[i / kPack][i % kPack]);
    return most;
  }

  static __device__ InPack singles(const In* chunk, unsigned first, unsigned columns, In other) {
    InPack pack = InPack::filled(other);
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e)
      if (first + e < columns) pack.set(e, chunk[first + e]);
    return pack;
  }

  template <class Result>
  static __device__ void write(Out* chunk, unsigned columns, const Result& result) {
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      const OutPack pack = OutPack::of([&](unsigned e) { return result(u, e); });
      if (number(u) + kPack <= columns) {
        *reinterpret_cast<OutPack*>(chunk + number(u)) = pack;
      } else {
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          if (number(u) + e < columns) chunk[number(u) + e] = pack[e];
      }
    }
  }
};

}  // namespace hone
