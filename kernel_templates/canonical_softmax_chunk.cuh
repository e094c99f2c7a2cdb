// HeldChunks: the part of a row that a lane holds in registers for canonical_softmax.cuh.
#pragma once

#include "canonical_softmax_ops.cuh"

namespace hone {

/// The elements of kChunks chunks, or of a shorter row, that a lane holds: packs u < kUnroll, those of kLanes lanes side
/// by side. `columns` elements are there, from the first one on. The others have the weight 0, which is as good as −0
/// beside the heaviest one's; nothing is computed for packs that no lane has.
template <class Types, unsigned kLanes, unsigned kUnroll, unsigned kChunks = 1>
struct HeldChunks {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kPack = Types::kPack, kUnrollOfChunk = kUnroll / kChunks;
  static_assert(kUnrollOfChunk * kChunks == kUnroll);

  Acc kept[kUnroll][kPack];  ///< elements, then their weights, or their exponents for the logarithm

  /// The number of the first element of pack u.
  static __device__ unsigned number(unsigned u) { return (u * kLanes + threadIdx.x % kLanes) * kPack; }

  __device__ void load(const In* first, unsigned columns, Acc factor) {
    InPack packs[kUnroll];
    const In weightless = convert<In>(factor < Acc(0) ? highest<Acc>() : lowest<Acc>());
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (number(u) + kPack <= columns) packs[u] = *reinterpret_cast<const InPack*>(first + number(u));
      else if (number(u) < columns) packs[u] = singles(first, number(u), columns, weightless);
      else packs[u] = InPack::filled(weightless);
    }
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u)
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) kept[u][e] = convert<Acc>(packs[u][e]);
  }

  __device__ Acc heaviest(Acc factor) const {
    return factor < Acc(0) ? -extreme_of_kept<false>() : extreme_of_kept<true>();
  }

  /// The leaves of the trees of the chunks, folded as far as they are in one lane.
  __device__ void weigh(Acc (&values)[kChunks * kPack], unsigned columns, const Weight& weight) {
#pragma unroll
    for (unsigned k = 0; k < kChunks; ++k) {
      const Leaves of_chunk = fold_leaves<LeavesSum, kUnrollOfChunk>(
          [&](unsigned u) { return leaves(k * kUnrollOfChunk + u, columns, weight); });
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) values[k * kPack + e] = of_chunk.values[e];
    }
  }

  __device__ void store(Out* first, unsigned columns, const Weight& weight, Acc divisor) const {
    if (weight.is_nan) write(first, columns, [](unsigned, unsigned) { return canonical_nan<Out>(); });
    else write(first, columns, [&](unsigned u, unsigned e) { return weight.of_kept(kept[u][e], divisor); });
  }

 private:
  using Leaves = Array<Acc, kPack>;
  struct LeavesSum {
    using State = Leaves;
    static __device__ Leaves combine(const Leaves& a, const Leaves& b) {
      return Leaves([&](unsigned e) { return rounded_sum(a.values[e], b.values[e]); });
    }
  };

  __device__ Leaves leaves(unsigned u, unsigned columns, const Weight& weight) {
    if (u * kLanes * kPack >= columns) return Leaves([&](unsigned e) { return kept[u][e] = Acc(0); });
    return Leaves([&](unsigned e) {
      const Acc exponent = weight.exponent(kept[u][e]), leaf = canonical_exponential_of_number(exponent);
      kept[u][e] = Types::kLog ? exponent : leaf;
      return leaf;
    });
  }

  template <bool kLargest>
  __device__ Acc extreme_of_kept() const {
    Acc most = kept[0][0];
#pragma unroll
    for (unsigned i = 1; i < kUnroll * kPack; ++i) most = extreme<kLargest, false>(most, kept[i / kPack][i % kPack]);
    return most;
  }

  static __device__ InPack singles(const In* row, unsigned first, unsigned columns, In other) {
    InPack pack = InPack::filled(other);
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e)
      if (first + e < columns) pack.set(e, row[first + e]);
    return pack;
  }

  template <class Result>
  static __device__ void write(Out* first, unsigned columns, const Result& result) {
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (number(u) >= columns) continue;
      const OutPack pack = OutPack::of([&](unsigned e) { return result(u, e); });
      if (number(u) + kPack <= columns) {
        *reinterpret_cast<OutPack*>(first + number(u)) = pack;
      } else {
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          if (number(u) + e < columns) first[number(u) + e] = pack[e];
      }
    }
  }
};

}  // namespace hone
