// Rows for canonical_softmax.cuh that are held in shared memory. The length of a row changes the shared memory of a
// launch, not the registers of a thread, so many warps are resident, and some load while others compute or store.
//
// A row belongs to a warp, a block or a cluster; arguments.chunks is how many of its chunks each block has, and a warp
// of those that share a row takes 2^run_levels of them, one after the other. Each chunk has a slot, where a lane keeps
// its packs of elements, and then their weights, or the same elements for the logarithm. No thread reads what another
// one kept.
//
// Constraints: those of canonical_softmax.cuh but for kChunks; dynamic shared memory has a slot for each chunk of a row
// that a block has, for each row that it holds at once.
#pragma once

#include "canonical_softmax_chunk.cuh"
#include "canonical_softmax_write.cuh"

namespace hone {

extern __shared__ __align__(16) unsigned char slots_in_smem[];

/// A Row of the chunks of a warp, in their slots.
template <class Types_>
struct SlotsRow {
  using Types = Types_;
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Again = SlotsRow;
  static constexpr unsigned kElements = kChunkElements<In>;
  static constexpr bool kIsApart = false;

  struct Place {
    unsigned columns;  ///< of the part
    Acc factor;
    unsigned slot;  ///< the first
  } place;
  Acc of_lane;  ///< the largest of its elements

  template <class AnyPowers>
  __device__ void load(const In* in, const AnyPowers& powers) {
    of_lane = HeaviestElement<Types>::absent();
#pragma unroll 1
    for (unsigned i = 0; i < place.columns; i += kElements) {
      const unsigned columns = place.columns - i;
      if (columns < kElements) load_chunk<false>(in + i, slots() + i, columns, powers);
      else load_chunk<true>(in + i, slots() + i, columns, powers);
    }
  }

  template <class AnyPowers>
  __device__ Acc sum(const AnyPowers& powers) const {
    RunTree<SoftmaxWeight<Types>, unsigned> tree;
#pragma unroll 1
    for (unsigned i = 0; i < place.columns; i += kElements) {
      const unsigned columns = place.columns - i;
      Acc values[Types::kPack];
      if (columns < kElements) weigh<Part<false>>(values, slots() + i, columns, powers);
      else weigh<Part<true>>(values, slots() + i, columns, powers);
      tree.template push<0>(fold_lanes<CanonicalSum<Acc>, Types::kPack>(values));
    }
    return tree.root();
  }
  __device__ Acc heaviest() const {
    return CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kWarpThreads>(of_lane);
  }

  template <class Weight>
  __device__ void store(const In*, Out* out, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
#pragma unroll 1
    for (unsigned i = 0; i < place.columns; i += kElements) {
      const unsigned columns = place.columns - i;
      if (columns < kElements) store_chunk<false>(out + i, slots() + i, columns, weight, norm);
      else store_chunk<true>(out + i, slots() + i, columns, weight, norm);
    }
  }

 private:
  static constexpr unsigned kPartElements = kWarpThreads * Types::kPack, kParts = kElements / kPartElements;

  __device__ Acc* slots() const { return reinterpret_cast<Acc*>(slots_in_smem) + place.slot * kElements; }

  /// A pack of each lane: few registers hold weights at a time. Lanes have their pieces of 16 bytes side by side in
  /// shared memory, so that there are no bank conflicts.
  template <bool kIsWhole>
  struct Part : HeldChunks<Types, kWarpThreads, 1, 1, !Types::kLog, kIsWhole> {
    static constexpr unsigned kPack = Types::kPack, kMost = 16 / sizeof(Acc), kPiece = kPack < kMost ? kPack : kMost;
    using Piece = Pack<Acc, kPiece>;

    template <class T>
    static __device__ T* piece_of(Acc* slot, unsigned piece) {
      return reinterpret_cast<T*>(reinterpret_cast<Piece*>(slot) + piece * kWarpThreads + threadIdx.x % kWarpThreads);
    }
    static __device__ typename Types::InPack* packs_in(Acc* slot) { return piece_of<typename Types::InPack>(slot, 0); }

    __device__ void keep(Acc* slot) const {
      if constexpr (Types::kLog) return;  // the elements are there
#pragma unroll
      for (unsigned p = 0; p < kPack / kPiece; ++p)
        *piece_of<Piece>(slot, p) = Piece::of([&](unsigned e) { return this->weights[0][p * kPiece + e]; });
    }
    __device__ void take(Acc* slot) {
      if constexpr (Types::kLog) {
        this->packs[0] = *packs_in(slot);
        return;
      }
#pragma unroll
      for (unsigned p = 0; p < kPack / kPiece; ++p) {
        const Piece piece = *piece_of<Piece>(slot, p);
#pragma unroll
        for (unsigned e = 0; e < kPiece; ++e) this->weights[0][p * kPiece + e] = piece[e];
      }
    }
  };

  /// How many of so many columns are behind the first ones.
  static __device__ unsigned behind(unsigned columns, unsigned first) { return columns > first ? columns - first : 0; }

  template <bool kIsWhole, class AnyPowers>
  __device__ void load_chunk(const In* in, Acc* slot, unsigned columns, const AnyPowers& powers) {
    HeldChunks<Types, kWarpThreads, kParts, 1, false, kIsWhole> chunk;
    chunk.load(in, columns, place.factor, powers);
#pragma unroll
    for (unsigned p = 0; p < kParts; ++p) *Part<kIsWhole>::packs_in(slot + p * kPartElements) = chunk.packs[p];
    of_lane = larger<false>(of_lane, largest_of<Acc>(chunk.packs));
  }

  template <bool kIsWhole, class Weight>
  static __device__ void store_chunk(Out* out, Acc* slot, unsigned columns, const Weight& weight,
                                     const SoftmaxNorm<Acc>& norm) {
#pragma unroll
    for (unsigned p = 0; p < kElements; p += kPartElements) {
      Part<kIsWhole> part;
      part.take(slot + p);
      part.store(out + p, behind(columns, p), weight, norm);
    }
  }

  /// Weighs parts kFirst, kFirst + kStep, … of a chunk, and folds them in halves.
  template <class AnyPart, unsigned kFirst = 0, unsigned kStep = 1, class AnyPowers>
  static __device__ void weigh(Acc (&values)[Types::kPack], Acc* slot, unsigned columns, const AnyPowers& powers) {
    if constexpr (kStep == kParts) {
      constexpr unsigned kBegin = kFirst * kPartElements;
      AnyPart part;
      part.packs[0] = *AnyPart::packs_in(slot + kBegin);
      part.weigh(values, behind(columns, kBegin), powers);
      part.keep(slot + kBegin);
    } else {
      weigh<AnyPart, kFirst, 2 * kStep>(values, slot, columns, powers);
      Acc others[Types::kPack];
      weigh<AnyPart, kFirst + kStep, 2 * kStep>(others, slot, columns, powers);
#pragma unroll
      for (unsigned e = 0; e < Types::kPack; ++e) values[e] = rounded_sum(values[e], others[e]);
    }
  }
};

/// kWarps of a block share a row: one, or all.
template <class Types, unsigned kBlockThreads, unsigned kWarps, unsigned kClusterBlocks>
struct CanonicalSoftmaxShared {
  using Row = SlotsRow<Types>;
  using Acc = typename Types::Acc;
  static constexpr unsigned kElements = Row::kElements;
  static constexpr unsigned kRows = kBlockThreads / kWarpThreads / kWarps;  ///< of a block, at once
  static constexpr unsigned kSlotBytes = kElements * sizeof(Acc);
  static_assert(kRows == 1 || (kWarps == 1 && kClusterBlocks == 1));

  static __device__ void run(const typename Types::Arguments& all) {
    CombineSoftmax<Types, kWarps * kWarpThreads, kClusterBlocks, Exchange::barriers> combine;
    const typename Types::GuessedPowers guessed{all.guessed, all.scale.factor};
    const unsigned warp = threadIdx.x / kWarpThreads;
    const unsigned begin = kWarps == 1 ? 0 : warp << all.run_levels;  // the warp's first chunk of the block's part
    const unsigned first = (begin + (kClusterBlocks > 1 ? rank_in_cluster() * all.chunks : 0)) * kElements;
    const unsigned most = begin < all.chunks ? kElements << all.run_levels : 0;
    const unsigned left = all.columns < first ? 0 : static_cast<unsigned>(all.columns) - first;
    Row part{{left < most ? left : most, all.scale.factor, kRows > 1 ? warp * all.chunks : begin}};
    for (unsigned long long row = blockIdx.x / kClusterBlocks * kRows + (kRows > 1 ? warp : 0); row < all.rows;
         row += gridDim.x / kClusterBlocks * kRows) {
      part.load(softmax_input<Types>(all, row) + first, guessed);
      write_row(part, softmax_input<Types>(all, row) + first, softmax_output<Types>(all, row) + first, combine,
                guessed);
    }
  }
};

}  // namespace hone
