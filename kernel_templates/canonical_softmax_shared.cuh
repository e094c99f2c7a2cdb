// Rows for canonical_softmax.cuh that are held in shared memory. The length of a row changes the shared memory of a
// launch, not the registers of a thread, so many warps are resident, and some load while others compute or store.
//
// A row belongs to a warp, a block or a cluster; arguments.chunks is how many of its chunks each block has, and a warp
// of those that share a row takes 2^run_levels of them, one after the other. Those behind the row's last chunk need not
// be launched. Each chunk has a slot, where a lane keeps its packs of elements, and then their weights, or the same
// elements for the logarithm. No thread reads what another one kept.
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
    InputBytes input;
    unsigned slot;  ///< the first
  } place;
  Acc of_lane;      ///< the largest of its elements
  unsigned before;  ///< of each chunk, if rows begin anywhere (HeldChunks)

  template <class AnyPowers>
  __device__ void load(const In* in, const AnyPowers& powers) {
    of_lane = HeaviestElement<Types>::absent();
#pragma unroll 1
    for (unsigned i = 0; i < place.columns; i += kElements) {
      const unsigned columns = place.columns - i;
      if (Types::kIsAligned && columns >= kElements) load_chunk<true>(in + i, slots() + i, columns, powers);
      else load_chunk<false>(in + i, slots() + i, columns, powers);
    }
  }

  template <class AnyPowers>
  __device__ Acc sum(const AnyPowers& powers) const {
    RunTree<SoftmaxWeight<Types>, unsigned> tree;
#pragma unroll 1
    for (unsigned i = 0; i < place.columns; i += kElements) {
      const unsigned columns = place.columns - i;
      Acc values[Types::kPack];
      if (Types::kIsAligned && columns >= kElements) weigh_chunk<true>(values, slots() + i, columns, powers);
      else weigh_chunk<false>(values, slots() + i, columns, powers);
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
      if (Types::kIsAligned && columns >= kElements) store_chunk<true>(out + i, slots() + i, columns, weight, norm);
      else store_chunk<false>(out + i, slots() + i, columns, weight, norm);
    }
  }

 private:
  static constexpr unsigned kParts = kElements / (kWarpThreads * Types::kPack);
  static constexpr unsigned kPack = Types::kPack, kMost = 16 / sizeof(Acc), kPiece = kPack < kMost ? kPack : kMost;
  using Piece = Pack<Acc, kPiece>;

  /// Few registers hold packs, or their weights, at a time: one pack is taken from the slot behind the other.
  template <bool kIsWhole>
  using Chunk = HeldChunks<Types, kWarpThreads, kParts, 1, !Types::kLog, kIsWhole>;
  template <bool kIsWhole>
  using Loaded = HeldChunks<Types, kWarpThreads, kParts, 1, false, kIsWhole>;

  __device__ Acc* slots() const { return reinterpret_cast<Acc*>(slots_in_smem) + place.slot * kElements; }

  /// Where pack u of the lane is. Lanes have pieces of 16 bytes side by side, so that there are no bank conflicts.
  template <class T>
  static __device__ T* piece_of(Acc* slot, unsigned u, unsigned piece = 0) {
    Acc* const of_lanes = slot + u * kWarpThreads * kPack;
    return reinterpret_cast<T*>(reinterpret_cast<Piece*>(of_lanes) + piece * kWarpThreads + threadIdx.x % kWarpThreads);
  }

  template <bool kIsWhole, class AnyPowers>
  __device__ void load_chunk(const In* in, Acc* slot, unsigned columns, const AnyPowers& powers) {
    Loaded<kIsWhole> chunk;
    chunk.load(in, columns, place.factor, place.input, powers);
#pragma unroll
    for (unsigned u = 0; u < kParts; ++u) *piece_of<typename Types::InPack>(slot, u) = chunk.packs[u];
    of_lane = larger<false>(of_lane, largest_of<Acc>(chunk.packs));
    before = chunk.before;
  }

  /// The leaves of a chunk's tree. The logarithm keeps the elements that are there.
  template <bool kIsWhole, class AnyPowers>
  __device__ void weigh_chunk(Acc (&values)[kPack], Acc* slot, unsigned columns, const AnyPowers& powers) const {
    Loaded<kIsWhole> chunk;
    chunk.before = before;
    chunk.fold_packs(values, [&](unsigned u, Acc (&weights)[kPack]) {
      chunk.packs[u] = *piece_of<typename Types::InPack>(slot, u);
      chunk.weigh_pack(weights, u, columns, powers);
      if constexpr (Types::kLog) return;
#pragma unroll
      for (unsigned p = 0; p < kPack / kPiece; ++p)
        *piece_of<Piece>(slot, u, p) = Piece::of([&](unsigned e) { return weights[p * kPiece + e]; });
    });
  }

  template <bool kIsWhole, class Weight>
  __device__ void store_chunk(Out* out, Acc* slot, unsigned columns, const Weight& weight,
                              const SoftmaxNorm<Acc>& norm) const {
    Chunk<kIsWhole> chunk;
    chunk.before = before;
    chunk.store(out, columns, weight, norm, [&](unsigned u) {
      if constexpr (Types::kLog) {
        chunk.packs[u] = *piece_of<typename Types::InPack>(slot, u);
      } else {
#pragma unroll
        for (unsigned p = 0; p < kPack / kPiece; ++p) {
          const Piece piece = *piece_of<Piece>(slot, u, p);
#pragma unroll
          for (unsigned e = 0; e < kPiece; ++e) chunk.weights[u][p * kPiece + e] = piece[e];
        }
      }
    });
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
    using CombineRow = CombineSoftmax<Types, kWarps * kWarpThreads, kClusterBlocks, Exchange::barriers>;
    CombineRow combine;
    const typename Types::GuessedPowers guessed{all.guessed, all.scale.factor};
    const unsigned warp = threadIdx.x / kWarpThreads;
    const unsigned begin = kWarps == 1 ? 0 : warp << all.run_levels;  // the warp's first chunk of the block's part
    const unsigned first = (begin + (kClusterBlocks > 1 ? rank_in_cluster() * all.chunks : 0)) * kElements;
    const unsigned most = begin < all.chunks ? kElements << all.run_levels : 0;
    const unsigned left = all.columns < first ? 0 : static_cast<unsigned>(all.columns) - first;
    Row part{{left < most ? left : most, all.scale.factor, all.input, kRows > 1 ? warp * all.chunks : begin}};
    for (unsigned long long row = CombineRow::group() * kRows + (kRows > 1 ? warp : 0); row < all.rows;
         row += CombineRow::groups() * kRows) {
      part.load(softmax_input<Types>(all, row) + first, guessed);
      write_row(part, softmax_input<Types>(all, row) + first, softmax_output<Types>(all, row) + first, combine,
                guessed);
    }
  }
};

}  // namespace hone
