// HeldChunks: the part of a row that a lane holds in registers for canonical_softmax.cuh.
#pragma once

#include "canonical_softmax_ops.cuh"

namespace hone {

/// The elements of kChunks chunks, or of a shorter row, that a lane holds: packs u < kUnroll, those of kLanes lanes
/// side by side. `columns` elements are there, from the first one on. The others have the weight 0, which is as good as
/// −0 beside the heaviest one's; nothing is computed for packs that no lane has. kIsWhole: all elements are there, but
/// for results if `columns` is 0.
///
/// Where rows begin anywhere, packs are aligned in the input, and each chunk is turned by the `before` elements of its
/// first pack that are before it: in their place are its last ones, if it has so many. A tree of halves does not change
/// when its leaves are turned. Packs at both ends of a chunk are loaded and stored one element at a time, and all packs
/// are stored so where the output is not aligned as the input is.
template <class Types, unsigned kLanes, unsigned kUnroll, unsigned kChunks = 1, bool kKeepsWeights = !Types::kLog,
          bool kAreAllThere = false>
struct HeldChunks {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  static constexpr unsigned kPack = Types::kPack, kUnrollOfChunk = kUnroll / kChunks;
  static constexpr unsigned kUnrolled = kUnroll, kMostOfChunk = kLanes * kUnrollOfChunk * kPack;
  static constexpr bool kIsAligned = Types::kIsAligned, kIsWhole = kAreAllThere && kIsAligned;
  static_assert(kUnrollOfChunk * kChunks == kUnroll);
  static_assert(kIsAligned || (kMostOfChunk & (kMostOfChunk - 1)) == 0);

  InPack packs[kUnroll];
  unsigned before;              ///< of each chunk, if rows begin anywhere
  Acc weights[kUnroll][kPack];  ///< with kKeepsWeights; else results are made of the packs, which need fewer registers

  /// Where pack u is among those of all lanes, and where so many elements end, in elements.
  static __device__ unsigned place(unsigned u) { return (u * kLanes + threadIdx.x % kLanes) * kPack; }
  __device__ unsigned behind(unsigned columns) const { return kIsAligned ? columns : columns + before; }

  /// The number of element e of pack u.
  __device__ unsigned number(unsigned u, unsigned e = 0) const {
    const unsigned at = place(u) + e;
    if constexpr (kIsAligned) return at;
    constexpr unsigned kMask = kMostOfChunk - 1;
    return (at & ~kMask) | ((at - before) & kMask);
  }
  /// True if all elements of pack u are there, one behind the other.
  __device__ bool is_whole(unsigned u, unsigned columns) const {
    if constexpr (kIsAligned) return place(u) + kPack <= columns;
    return place(u) % kMostOfChunk >= before && place(u) - before + kPack <= columns;
  }
  /// True if some element of pack u may be there.
  __device__ bool is_there(unsigned u, unsigned columns) const { return place(u) < behind(columns); }

  template <class AnyPowers>
  __device__ void load(const In* first, unsigned columns, Acc factor, const AnyPowers& powers) {
    const In weightless = convert<In>(factor < Acc(0) ? highest<Acc>() : lowest<Acc>());
    if constexpr (!kIsAligned) before = elements_behind_alignment<sizeof(InPack)>(first);
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (kIsWhole || is_whole(u, columns)) packs[u] = *reinterpret_cast<const InPack*>(first + number(u));
      else if (is_there(u, columns)) packs[u] = singles(first, u, columns, weightless);
      else packs[u] = InPack::filled(weightless);
    }
    powers.turn(packs);
  }

  /// The leaves of the trees of the chunks, folded as far as they are in one lane. Weights are kept, and folded in the
  /// end; where they are not, each is added where it is computed, so that few registers hold weights.
  template <class AnyPowers>
  __device__ void weigh(Acc (&values)[kChunks * kPack], unsigned columns, const AnyPowers& powers) {
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
              [&](unsigned u) { return weights[k * kUnrollOfChunk + u][e]; });
      }
    }
  }

  template <class Weight>
  __device__ void store(Out* first, unsigned columns, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
    if (weight.is_nan) write(first, columns, [](unsigned, unsigned) { return canonical_nan<Out>(); });
    else if constexpr (!Types::kLog)
      write(first, columns, [&](unsigned u, unsigned e) { return weight.of_kept(weights[u][e], norm); });
    else if (weight.scales_exactly()) write_logarithms<true>(first, columns, weight, norm);
    else write_logarithms<false>(first, columns, weight, norm);
  }

 private:
  template <bool kScalesExactly, class Weight>
  __device__ void write_logarithms(Out* first, unsigned columns, const Weight& weight,
                                   const SoftmaxNorm<Acc>& norm) const {
    write(first, columns, [&](unsigned u, unsigned e) {
      return weight.template of_kept<kScalesExactly>(convert<Acc>(packs[u][e]), norm);
    });
  }

  /// Calls act(e, weight) for the elements of a pack, and keeps their weights: zeros if no lane has an element of it.
  template <class AnyPowers, class Act>
  __device__ void weigh_pack(unsigned u, unsigned columns, const AnyPowers& powers, const Act& act) {
    const bool are_there = kIsWhole || u * kLanes * kPack < behind(columns);  // in some lane
    if (are_there) {
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) {
        const Acc of_element = powers(convert<Acc>(packs[u][e]));
        if constexpr (kKeepsWeights) weights[u][e] = of_element;
        act(e, of_element);
      }
    } else {
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) {
        if constexpr (kKeepsWeights) weights[u][e] = Acc(0);
        act(e, Acc(0));
      }
    }
  }

  /// Folds packs kFirst, kFirst + kStep, … of the chunk that begins with pack `begin`, in halves.
  template <unsigned kFirst, unsigned kStep, class AnyPowers>
  __device__ void fold_packs(Acc* values, unsigned begin, unsigned columns, const AnyPowers& powers) {
    if constexpr (kStep == kUnrollOfChunk) {
      weigh_pack(begin + kFirst, columns, powers, [&](unsigned e, Acc x) { values[e] = x; });
    } else {
      fold_packs<kFirst, 2 * kStep>(values, begin, columns, powers);
      if constexpr (2 * kStep == kUnrollOfChunk) {
        weigh_pack(begin + kFirst + kStep, columns, powers,
                   [&](unsigned e, Acc x) { values[e] = rounded_sum(values[e], x); });
      } else {
        Acc others[kPack];
        fold_packs<kFirst + kStep, 2 * kStep>(others, begin, columns, powers);
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e) values[e] = rounded_sum(values[e], others[e]);
      }
    }
  }

  __device__ InPack singles(const In* row, unsigned u, unsigned columns, In other) const {
    InPack pack = InPack::filled(other);
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e)
      if (number(u, e) < columns) pack.set(e, row[number(u, e)]);
    return pack;
  }

  template <class Result>
  __device__ void write(Out* first, unsigned columns, const Result& result) const {
    const bool in_step = kIsAligned || elements_behind_alignment<sizeof(OutPack)>(first) == before;
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (kIsWhole ? columns == 0 : !is_there(u, columns)) continue;
      const OutPack pack = OutPack::of([&](unsigned e) { return result(u, e); });
      if (kIsWhole || (in_step && is_whole(u, columns))) {
        auto* const to = reinterpret_cast<OutPack*>(first + number(u));
        // The compiler stores some packs of logarithms in four parts; in one, wider elements would spill.
        if constexpr (kIsWhole || (Types::kLog && sizeof(In) < sizeof(Acc))) store_streaming(to, pack);
        else *to = pack;
      } else {
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          if (number(u, e) < columns) first[number(u, e)] = pack[e];
      }
    }
  }
};

}  // namespace hone
