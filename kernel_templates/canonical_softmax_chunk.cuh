// What a lane holds of a row for canonical_softmax.cuh: HeldChunks in registers, KeptPacks in shared memory.
#pragma once

#include "canonical_softmax_packs.cuh"

namespace hone {

/// Packs of a row and their weights. Those of elements that are not there are 0, which is as good as −0 beside the
/// heaviest one's: the least weight of an element would not be, where each sum is a tie. Nothing is computed for packs
/// that no lane has.
template <class Types, unsigned kLanes, unsigned kUnroll, unsigned kChunks = 1, bool kKeepsWeights = !Types::kLog,
          bool kAreAllThere = false, bool kAreWhole = false>
struct HeldChunks : RowPacks<Types, kLanes, kUnroll, kChunks, kAreAllThere, kAreWhole> {
  using Packs = RowPacks<Types, kLanes, kUnroll, kChunks, kAreAllThere, kAreWhole>;
  using typename Packs::Out, typename Packs::Acc;
  using Packs::kPack, Packs::kUnrollOfChunk;

  Acc weights[kUnroll][kPack];  ///< with kKeepsWeights; else results are made of the packs, which need fewer registers

  /// Has what another has, in which there may be elements that are not there, or not.
  template <bool kAreOthersThere>
  __device__ void take(const HeldChunks<Types, kLanes, kUnroll, kChunks, kKeepsWeights, kAreOthersThere>& other) {
    this->before = other.before;
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      this->packs[u] = other.packs[u];
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) weights[u][e] = other.weights[u][e];
    }
  }

  /// The leaves of the trees of the chunks, folded as far as they are in one lane. Weights are kept, and folded in the
  /// end. Where they are not, as in the first kPassing chunks, each is added where it is computed, so that few
  /// registers hold them, and keep(u, weights) is called for those of pack u.
  template <unsigned kPassing = 0, class AnyPowers>
  __device__ void weigh(Acc (&values)[kChunks * kPack], unsigned columns, const AnyPowers& powers, const auto& keep) {
#pragma unroll
    for (unsigned k = 0; k < kChunks; ++k) {
      const unsigned begin = k * kUnrollOfChunk;
      Acc of_chunk[kPack];
      if (!kKeepsWeights || k < kPassing) {
        fold_packs(of_chunk, [&](unsigned u, Acc (&of_pack)[kPack]) {
          weigh_pack(of_pack, begin + u, columns, powers);
          keep(begin + u, of_pack);
        });
      } else {
#pragma unroll
        for (unsigned u = begin; u < begin + kUnrollOfChunk; ++u) weigh_pack(weights[u], u, columns, powers);
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          of_chunk[e] =
              fold_leaves<CanonicalSum<Acc>, kUnrollOfChunk>([&](unsigned u) { return weights[begin + u][e]; });
      }
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) values[k * kPack + e] = of_chunk[e];
    }
  }
  template <class AnyPowers>
  __device__ void weigh(Acc (&values)[kChunks * kPack], unsigned columns, const AnyPowers& powers) {
    weigh(values, columns, powers, [](unsigned, const Acc (&)[kPack]) {});
  }

  /// The weights of pack u: zeros if no lane has an element of it.
  template <class AnyPowers>
  __device__ void weigh_pack(Acc (&values)[kPack], unsigned u, unsigned columns, const AnyPowers& powers) const {
    // A lane has most of a row's packs if they are whole, and a branch for each would take longer than zeros.
    const bool may_be_none = !kAreWhole || (kUnroll > 2 && u >= kUnroll / 2);
    const bool are_there = !may_be_none || this->has_any(u, columns);
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e) values[e] = Acc(0);
    if (!are_there) return;
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e) values[e] = powers(convert<Acc>(this->packs[u][e]));
    const auto leave_out = [&] {
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        if (!this->has(u, e, columns)) values[e] = Acc(0);
    };
    if constexpr (kAreWhole) leave_out();
    else behind_branch(!this->has_all(u, columns), leave_out);
  }

  /// Folds what weigh(u, values) makes of packs kFirst, kFirst + kStep, … of a chunk, in halves.
  template <unsigned kFirst = 0, unsigned kStep = 1, class Weigh>
  static __device__ void fold_packs(Acc (&values)[kPack], const Weigh& weigh) {
    if constexpr (kStep == kUnrollOfChunk) {
      weigh(kFirst, values);
    } else {
      fold_packs<kFirst, 2 * kStep>(values, weigh);
      Acc others[kPack];
      fold_packs<kFirst + kStep, 2 * kStep>(others, weigh);
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) values[e] = rounded_sum(values[e], others[e]);
    }
  }

  /// take(u) is called before pack u is stored.
  template <class Weight>
  __device__ void store(Out* first, unsigned columns, const Weight& weight, const SoftmaxNorm<Acc>& norm,
                        const auto& take) const {
    const auto kept = [&](unsigned u, unsigned e) {
      if constexpr (Types::kLog) return convert<Acc>(this->packs[u][e]);
      else return weights[u][e];
    };
    weight.write_results(*this, norm, kept, first, columns, take);
  }
  template <class Weight>
  __device__ void store(Out* first, unsigned columns, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
    store(first, columns, weight, norm, [](unsigned) {});
  }
};

/// The weights of packs, or their elements for the logarithm, in shared memory. They are in pieces of 16 bytes, which
/// the lanes of a warp have side by side, so that there are no bank conflicts. No lane reads what another one kept.
template <class Types>
struct KeptPacks {
  using Acc = typename Types::Acc;
  static constexpr unsigned kPack = Types::kPack, kMostOfPiece = 16 / sizeof(Acc);
  static constexpr unsigned kOfPiece = kPack < kMostOfPiece ? kPack : kMostOfPiece;
  static constexpr unsigned kPieces = Types::kLog ? 1 : kPack / kOfPiece;  ///< of a pack
  using Piece = typename Select<Types::kLog, typename Types::InPack, Pack<Acc, kOfPiece>>::type;
  static constexpr unsigned kPackBytes = kPieces * sizeof(Piece);

  Piece* of_lane;

  __device__ explicit KeptPacks(void* of_warp) : of_lane(static_cast<Piece*>(of_warp) + threadIdx.x % kWarpThreads) {}

  __device__ void keep(unsigned u, const typename Types::InPack& pack, const Acc (&weights)[kPack]) const {
    unrolled<kPieces>([&](unsigned p) {
      if constexpr (Types::kLog) *piece(u, p) = pack;
      else *piece(u, p) = Piece::of([&](unsigned e) { return weights[p * kOfPiece + e]; });
    });
  }
  template <class AnyChunks>
  __device__ void take(unsigned u, AnyChunks& chunks) const {
    unrolled<kPieces>([&](unsigned p) {
      const Piece kept = *piece(u, p);
      if constexpr (Types::kLog) chunks.packs[u] = kept;
      else unrolled<kOfPiece>([&](unsigned e) { chunks.weights[u][p * kOfPiece + e] = kept[e]; });
    });
  }

 private:
  __device__ Piece* piece(unsigned u, unsigned p) const { return of_lane + (u * kPieces + p) * kWarpThreads; }
};

}  // namespace hone
