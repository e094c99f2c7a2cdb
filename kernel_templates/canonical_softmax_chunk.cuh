// HeldChunks: the part of a row that a lane holds in registers for canonical_softmax.cuh.
#pragma once

#include "canonical_softmax_ops.cuh"

namespace hone {

/// The elements of kChunks chunks, or of a shorter row, that a lane has: packs u < kUnroll, those of kLanes lanes side
/// by side. `columns` elements are there, from the first one on; the others have the weight 0, which is as good as −0
/// beside a weight.
template <class Types, unsigned kLanes, unsigned kUnroll, unsigned kChunks = 1>
struct HeldChunks {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  static constexpr unsigned kPack = Types::kPack, kUnrollOfChunk = kUnroll / kChunks;
  static constexpr unsigned kPackElements = kLanes * kPack, kMostColumns = kUnroll * kPackElements;
  static_assert(kUnrollOfChunk * kChunks == kUnroll);
  using Packs = InPack[kUnroll];

  /// The number of the lane's first element, and of that of pack u.
  static __device__ unsigned number() { return threadIdx.x % kLanes * kPack; }
  static __device__ unsigned number(unsigned u) { return u * kPackElements + number(); }

  static __device__ void load(Packs& packs, const In* first, unsigned columns, Acc factor) {
    const In* const mine = first + number();
    if (columns >= kMostColumns) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) packs[u] = *reinterpret_cast<const InPack*>(mine + u * kPackElements);
    } else {
      fill(packs, factor);
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        if (number(u) + kPack <= columns) packs[u] = *reinterpret_cast<const InPack*>(mine + u * kPackElements);
      load_singles(packs, mine, columns);
    }
  }

  /// Starts to copy whole packs to shared memory, those of this lane to places[0], places[kStep], …
  template <unsigned kStep>
  static __device__ void copy(InPack* places, const In* first, unsigned columns) {
    const In* const mine = first + number();
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u)
      if (columns >= kMostColumns || number(u) + kPack <= columns)
        copy_to_shared(places + u * kStep, reinterpret_cast<const InPack*>(mine + u * kPackElements));
  }
  /// What load() does, of a row that was copied.
  template <unsigned kStep>
  static __device__ void load_copied(Packs& packs, const InPack* places, const In* first, unsigned columns,
                                     Acc factor) {
    if (columns >= kMostColumns) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) packs[u] = places[u * kStep];
    } else {
      fill(packs, factor);
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        if (number(u) + kPack <= columns) packs[u] = places[u * kStep];
      load_singles(packs, first + number(), columns);
    }
  }

  /// The leaves of the trees of the chunks, folded as far as they are in one lane: values[k · kPack + e] is residue e
  /// of chunk k. Calls keep(u, weights) for each pack. Nothing is computed for packs that no lane has.
  template <class Keep>
  static __device__ void weigh(Acc (&values)[kChunks * kPack], const Packs& packs, unsigned columns,
                               const Powers<Acc>& powers, const Keep& keep) {
    if (columns >= kMostColumns) weigh_chunks<true>(values, packs, columns, powers, keep);
    else weigh_chunks<false>(values, packs, columns, powers, keep);
  }

  /// Writes result(u, e) for each element, or the NaN if the row has one.
  template <class Result>
  static __device__ void store(Out* first, unsigned columns, bool is_nan, const Result& result) {
    Out* const mine = first + number();
    if (columns >= kMostColumns && !is_nan) {
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        *reinterpret_cast<OutPack*>(mine + u * kPackElements) = OutPack::of([&](unsigned e) { return result(u, e); });
      return;
    }
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (number(u) >= columns) continue;
      OutPack packs[1] = {OutPack::of([&](unsigned e) { return result(u, e); })};
      if (is_nan) packs[0] = OutPack::filled(canonical_nan<Out>());
      if (number(u) + kPack <= columns) {
        *reinterpret_cast<OutPack*>(mine + u * kPackElements) = packs[0];
      } else {
        const Array<OutPack, 1> singles = launder(packs);
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          if (number(u) + e < columns) mine[u * kPackElements + e] = singles.values[0][e];
      }
    }
  }

 private:
  static __device__ void fill(Packs& packs, Acc factor) {
    const InPack weightless = InPack::filled(convert<In>(factor < Acc(0) ? highest<Acc>() : lowest<Acc>()));
#pragma unroll
    for (InPack& pack : packs) pack = weightless;
  }
  static __device__ void load_singles(Packs& packs, const In* mine, unsigned columns) {
    if (columns % kPack == 0) return;
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (number(u) >= columns || number(u) + kPack <= columns) continue;
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        if (number(u) + e < columns) packs[u].set(e, mine[u * kPackElements + e]);
    }
  }

  template <bool kIsWhole, class Keep>
  static __device__ void weigh_chunks(Acc (&values)[kChunks * kPack], const Packs& packs, unsigned columns,
                                      const Powers<Acc>& powers, const Keep& keep) {
#pragma unroll
    for (unsigned k = 0; k < kChunks; ++k)
      fold_packs<kIsWhole, 0, 1>(values + k * kPack, packs, k * kUnrollOfChunk, columns, powers, keep);
  }
  /// Folds packs kFirst, kFirst + kStep, … of the chunk that begins with pack `begin`, in halves.
  template <bool kIsWhole, unsigned kFirst, unsigned kStep, class Keep>
  static __device__ void fold_packs(Acc* values, const Packs& packs, unsigned begin, unsigned columns,
                                    const Powers<Acc>& powers, const Keep& keep) {
    if constexpr (kStep == kUnrollOfChunk) {
      weigh_pack<kIsWhole>(values, packs[begin + kFirst], begin + kFirst, columns, powers);
      keep(begin + kFirst, values);
    } else {
      fold_packs<kIsWhole, kFirst, 2 * kStep>(values, packs, begin, columns, powers, keep);
      Acc others[kPack];
      fold_packs<kIsWhole, kFirst + kStep, 2 * kStep>(others, packs, begin, columns, powers, keep);
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) values[e] = rounded_sum(values[e], others[e]);
    }
  }
  template <bool kIsWhole>
  static __device__ void weigh_pack(Acc* weights, const InPack& pack, unsigned u, unsigned columns,
                                    const Powers<Acc>& powers) {
    if (!kIsWhole && u * kPackElements >= columns) {
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) weights[e] = Acc(0);
      return;
    }
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e) {
      weights[e] = powers(convert<Acc>(pack[e]));
      if (!kIsWhole && number(u) + e >= columns) weights[e] = Acc(0);
    }
  }
};

/// A row's part that stays in registers until it is written: its weights, or its elements for the logarithm.
template <class Types, unsigned kLanes, unsigned kUnroll, unsigned kChunks = 1>
struct HeldRow : HeldChunks<Types, kLanes, kUnroll, kChunks> {
  using Chunks = HeldChunks<Types, kLanes, kUnroll, kChunks>;
  using typename Chunks::Acc, typename Chunks::In, typename Chunks::Out, typename Chunks::Packs;
  static constexpr unsigned kPack = Types::kPack;

  Packs packs;
  Acc weights[Types::kLog ? 1 : kUnroll][kPack];

  __device__ void load(const In* first, unsigned columns, Acc factor) { Chunks::load(packs, first, columns, factor); }
  template <unsigned kStep>
  __device__ void load_copied(const typename Types::InPack* places, const In* first, unsigned columns, Acc factor) {
    Chunks::template load_copied<kStep>(packs, places, first, columns, factor);
  }
  __device__ Acc heaviest(Acc factor) const { return heaviest_of<Acc>(packs, factor); }

  /// The sum of the weights in the lanes, in the canonical tree; all of them get it.
  __device__ Acc weigh(unsigned columns, const Powers<Acc>& powers) {
    Acc values[kChunks * kPack];
    Chunks::weigh(values, packs, columns, powers, [&](unsigned u, const Acc* of_pack) {
      if constexpr (!Types::kLog) {
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e) weights[u][e] = of_pack[e];
      }
    });
    return fold_lanes<CanonicalSum<Acc>, kPack, kChunks, kLanes>(values);
  }

  __device__ void store(Out* first, unsigned columns, const SoftmaxWeight<Types>& weight, Acc sum) const {
    const auto norm = weight.norm(sum);
    if constexpr (Types::kLog) {
      const auto elements = launder(packs);
      Chunks::store(first, columns, weight.is_nan, [&](unsigned u, unsigned e) {
        return weight.of_kept(weight.exponent(convert<Acc>(elements.values[u][e])), norm);
      });
    } else {
      Chunks::store(first, columns, weight.is_nan, [&](unsigned u, unsigned e) {
        return weight.of_kept(weights[u][e], norm);
      });
    }
  }
};

}  // namespace hone
