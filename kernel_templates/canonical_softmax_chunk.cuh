// HeldChunks: the part of a row that a lane holds in registers for canonical_softmax.cuh.
#pragma once

#include "canonical_softmax_ops.cuh"

namespace hone {

/// The elements of kChunks chunks, or of a shorter row, that a lane holds: packs u < kUnroll, those of kLanes lanes side
/// by side. `columns` elements are there, from the first one on. The others have the weight 0, which is as good as −0
/// beside the heaviest one's; nothing is computed for packs that no lane has.
template <class Types, unsigned kLanes, unsigned kUnroll, unsigned kChunks = 1, bool kKeepsWeights = !Types::kLog>
struct HeldChunks {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kPack = Types::kPack, kUnrollOfChunk = kUnroll / kChunks;
  static_assert(kUnrollOfChunk * kChunks == kUnroll);

  Acc kept[kUnroll][kPack];  ///< elements; with kKeepsWeights, their weights then

  /// The number of the first element of pack u.
  static __device__ unsigned number(unsigned u) { return (u * kLanes + threadIdx.x % kLanes) * kPack; }

  static __device__ void load_packs(InPack (&packs)[kUnroll], const In* first, unsigned columns, Acc factor) {
    const In weightless = convert<In>(factor < Acc(0) ? highest<Acc>() : lowest<Acc>());
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (number(u) + kPack <= columns) packs[u] = *reinterpret_cast<const InPack*>(first + number(u));
      else if (number(u) < columns) packs[u] = singles(first, number(u), columns, weightless);
      else packs[u] = InPack::filled(weightless);
    }
  }
  __device__ void widen(const InPack (&packs)[kUnroll]) {
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u)
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) kept[u][e] = convert<Acc>(packs[u][e]);
  }

  /// The leaves of the trees of the chunks, folded as far as they are in one lane. Weights are kept, and folded in the
  /// end; where elements are kept, each weight is added where it is computed, so that few registers hold weights.
  __device__ void weigh(Acc (&values)[kChunks * kPack], unsigned columns, const Powers<Acc>& powers) {
#pragma unroll
    for (unsigned k = 0; k < kChunks; ++k) {
      if constexpr (!kKeepsWeights) {
        fold_packs<0, 1>(values + k * kPack, k * kUnrollOfChunk, columns, powers);
      } else {
#pragma unroll
        for (unsigned u = k * kUnrollOfChunk; u < (k + 1) * kUnrollOfChunk; ++u)
          weigh_pack(u, columns, powers, [](unsigned, Acc) {});
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          values[k * kPack + e] = fold_leaves<CanonicalSum<Acc>, kUnrollOfChunk>(
              [&](unsigned u) { return kept[k * kUnrollOfChunk + u][e]; });
      }
    }
  }

  __device__ void store(Out* first, unsigned columns, const Weight& weight,
                        const typename Weight::Norm& norm) const {
    if (weight.is_nan) write(first, columns, [](unsigned, unsigned) { return canonical_nan<Out>(); });
    else write(first, columns, [&](unsigned u, unsigned e) { return weight.of_kept(kept[u][e], norm); });
  }

 private:
  /// Keeps what the results are made of, and calls act(e, weight); not if no lane has an element of the pack.
  template <class Act>
  __device__ void weigh_pack(unsigned u, unsigned columns, const Powers<Acc>& powers, const Act& act) {
    if (u * kLanes * kPack < columns) {
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) {
        const Acc of_element = powers(kept[u][e]);
        if constexpr (kKeepsWeights) kept[u][e] = of_element;
        act(e, of_element);
      }
    } else {
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) kept[u][e] = Acc(0);
    }
  }

  /// Folds packs kFirst, kFirst + kStep, … of the chunk that begins with pack `begin`, in halves. Weights are no less
  /// than 0, so that a sum with 0 is exact.
  template <unsigned kFirst, unsigned kStep>
  __device__ void fold_packs(Acc* values, unsigned begin, unsigned columns, const Powers<Acc>& powers) {
    const auto add_pack = [&](unsigned u) {
      weigh_pack(begin + u, columns, powers, [&](unsigned e, Acc x) { values[e] = rounded_sum(values[e], x); });
    };
    if constexpr (kStep == kUnrollOfChunk) {
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) values[e] = Acc(0);
      add_pack(kFirst);
    } else {
      fold_packs<kFirst, 2 * kStep>(values, begin, columns, powers);
      if constexpr (2 * kStep == kUnrollOfChunk) {
        add_pack(kFirst + kStep);
      } else {
        Acc others[kPack];
        fold_packs<kFirst + kStep, 2 * kStep>(others, begin, columns, powers);
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e) values[e] = rounded_sum(values[e], others[e]);
      }
    }
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
