// Rows for canonical_softmax.cuh that neighbouring lanes hold in registers: HeldRow, and the kernel of groups of lanes
// that have rows to themselves.
#pragma once

#include "canonical_softmax_long.cuh"
#include "canonical_softmax_write.cuh"

namespace hone {

/// A Row in registers. kIsWhole: all elements are there, and if place.columns is 0, no results are wanted. kIsOfPacks:
/// all elements of a pack are there, or none.
template <class Types_, unsigned kLanes, unsigned kUnroll, unsigned kChunks, bool kIsWhole = false,
          bool kIsOfPacks = false>
struct HeldRow {
  using Types = Types_;
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Held = HeldChunks<Types, kLanes, kUnroll, kChunks, !Types::kLog, kIsWhole, kIsOfPacks>;
  using Again = HeldRow<Types, kLanes, kUnroll, kChunks>;
  static constexpr bool kIsApart = true;

  using Place = RowPart<Acc>;

  Place place;
  Held held;

  template <class AnyPowers>
  __device__ void load(const In* in, const AnyPowers& powers) {
    held.load(in, place.columns, place.factor, place.input, powers);
  }

  template <class AnyPowers>
  __device__ Acc sum(const AnyPowers& powers) {
    Acc values[kChunks * Types::kPack];
    held.weigh(values, place.columns, powers);
    return fold_lanes<CanonicalSum<Acc>, Types::kPack, kChunks, kLanes>(values);
  }
  __device__ Acc heaviest() const {
    return CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kLanes>(largest_of<Acc>(held.packs));
  }

  template <class Weight>
  __device__ void store(const In*, Out* out, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
    held.store(out, place.columns, weight, norm);
  }
};

/// The grid-stride loop is over tiles of kTileRows rows. A group of kLanes lanes loads kRows of them, of up to
/// kWholeColumns elements, before it computes any. If kMayBeLong, rows have up to twice as many, for which there are
/// twice the lanes; or twice the packs of a warp; or a warp that holds a chunk reads them twice.
template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows, bool kMayBeLong>
struct CanonicalSoftmaxLanes {
  static constexpr unsigned kTileRows = kBlockThreads / kLanes * kRows, kChunk = kChunkElements<typename Types::In>;
  static constexpr unsigned kWholeColumns = kLanes * kUnroll * Types::kPack;
  static constexpr unsigned kHeldColumns = kMayBeLong ? 2 * kWholeColumns : kWholeColumns;
  static_assert(kLanes == kWarpThreads || (kLanes < kWarpThreads && kHeldColumns <= kChunk));

  static __device__ void run(const typename Types::Arguments& all) {
    if constexpr (!Types::kIsAligned) {
      if (!kMayBeLong || all.columns <= kWholeColumns) write_tiles<OfLanes<>, kLanes, kRows>(all);
      else write_tiles<Long<>, kLongLanes, kLongRows>(all);
    } else if (all.columns == kWholeColumns) {
      write_tiles<OfLanes<true>, kLanes, kRows>(all);
    } else if (all.columns % Types::kPack != 0) {
      write_tiles<Long<>, kLongLanes, kLongRows>(all);
    } else if (!kMayBeLong || all.columns < kWholeColumns) {
      write_tiles<OfLanes<false, true>, kLanes, kRows>(all);
    } else {
      write_tiles<Long<true>, kLongLanes, kLongRows>(all);
    }
  }

 private:
  static constexpr bool kHasLongWarps = kMayBeLong && kLanes == kWarpThreads;
  static constexpr bool kReadsTwice = kHasLongWarps && kWholeColumns >= kChunk;
  static constexpr unsigned kLongLanes = kMayBeLong && !kHasLongWarps ? 2 * kLanes : kLanes;
  static constexpr unsigned kLongUnroll = kHasLongWarps ? 2 * kUnroll : kUnroll;
  static constexpr unsigned kLongRows = kReadsTwice ? 1 : kHasLongWarps && kRows > 1 ? kRows / 2 : kRows;
  static __device__ constexpr unsigned chunks_of(unsigned columns) { return columns > kChunk ? columns / kChunk : 1; }

  template <bool kIsWhole = false, bool kIsOfPacks = false>
  using OfLanes = HeldRow<Types, kLanes, kUnroll, chunks_of(kWholeColumns), kIsWhole, kIsOfPacks>;
  template <bool kIsOfPacks = false>
  using LongHeld = HeldRow<Types, kLongLanes, kLongUnroll, chunks_of(kHeldColumns), false, kIsOfPacks>;
  template <bool kIsOfPacks = false>
  using Long = typename Select<kReadsTwice, LongRow<Types>, LongHeld<kIsOfPacks>>::type;

  template <class AnyRow, unsigned kOfRow, unsigned kAtOnce>
  static __device__ void write_tiles(const typename Types::Arguments& all) {
    constexpr unsigned kGroups = kBlockThreads / kOfRow;
    CombineSoftmax<Types, kOfRow, 1, Exchange::barriers> combine;
    const typename Types::GuessedPowers guessed{all.guessed, all.scale.factor};
    for (unsigned long long tile = blockIdx.x; tile * kTileRows < all.rows; tile += gridDim.x) {
#pragma unroll 1
      for (unsigned begin = 0; begin < kTileRows; begin += kAtOnce * kGroups) {
        const unsigned long long first = tile * kTileRows + begin + threadIdx.x / kOfRow;
        const unsigned left = first < all.rows ? at_most(all.rows - first, kTileRows) : 0;
        // A row that is not there is the first of all, so that it can be loaded.
        const auto place = [&](unsigned r) { return r * kGroups < left ? first + r * kGroups : 0; };
        AnyRow rows[kAtOnce];
#pragma unroll
        for (unsigned r = 0; r < kAtOnce; ++r) {
          rows[r].place = {r * kGroups < left ? static_cast<unsigned>(all.columns) : 0, all.scale.factor, all.input};
          rows[r].load(softmax_input<Types>(all, place(r)), guessed);
        }
#pragma unroll
        for (unsigned r = 0; r < kAtOnce; ++r)
          write_row(rows[r], softmax_input<Types>(all, place(r)), softmax_output<Types>(all, place(r)), combine,
                    guessed);
      }
    }
  }
};

}  // namespace hone
