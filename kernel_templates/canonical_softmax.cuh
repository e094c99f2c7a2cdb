// Softmax, or its logarithm, of rows with the same bits for every policy, number of rows, pitch, alignment and device.
//
// Weights are exponentials of IEEE operations alone (canonical_powers.cuh), and their sum is the canonical tree over
// the row's elements. Six ways, by the length of a row:
//
//   CanonicalSoftmaxLanes   (canonical_softmax_lanes.cuh) neighbouring lanes hold a row in registers: at most a chunk,
//                           or a few chunks if they are a warp.
//   CanonicalSoftmaxBlock   the warps of a block, or of a cluster, hold a row in registers. They share its chunks
//                           evenly: each takes 2^run_levels of them, and a block arguments.chunks. Warps and blocks
//                           behind the row's last chunk need not be launched. Where a warp takes more than kChunks, the
//                           row is read twice. Some weights may be in shared memory, of which a launch has
//                           Part::kSmemBytes for each warp.
//   CanonicalSoftmaxShared  (canonical_softmax_shared.cuh) a warp, a block or a cluster holds a row in shared memory.
//   CanonicalSoftmaxRing    (canonical_softmax_ring.cuh) the same, and each row is written while the next one is summed.
//   CanonicalSoftmaxHeld    (canonical_softmax_held.cuh) a grid holds rows in shared memory, or as much as it can.
//   CanonicalSoftmaxRows    (canonical_softmax_rows.cuh) rows of any length are read twice.
//
// May be in place. Constraints: kBlockThreads is a power of two; rows begin at multiples of kPack elements in both
// arrays, or, without Types::kIsAligned, anywhere; what lanes or shared memory hold is whole rows; kChunks · kPack ≤ 32.
#pragma once

#include "bulk_copy.cuh"
#include "canonical_softmax_lanes.cuh"
#include "dynamic_smem.cuh"

namespace hone {

/// The HeldRow of a warp of several that share a row. Most of them have all elements that they can hold, and there is
/// code for these without checks, if kMayBeWhole. What results of its first kInShared chunks are made of is in shared
/// memory.
template <class Types, unsigned kUnroll, unsigned kChunks, unsigned kInShared, bool kMayBeWhole = true>
struct HeldPart : HeldRow<Types, kWarpThreads, kUnroll, kChunks> {
  using Again = HeldPart<Types, kUnroll, kChunks, kInShared, false>;
  using Any = HeldRow<Types, kWarpThreads, kUnroll, kChunks>;
  using Whole = HeldChunks<Types, kWarpThreads, kUnroll, kChunks, !Types::kLog, true>;
  using typename Any::Acc, typename Any::In, typename Any::Out;
  using Any::held, Any::place;
  using Kept = KeptPacks<Types>;
  static constexpr unsigned kPack = Types::kPack, kPacksInShared = kUnroll / kChunks * kInShared;
  static constexpr unsigned kSmemBytes = kPacksInShared * kWarpThreads * Kept::kPackBytes;  ///< of a warp

  template <class AnyPowers>
  __device__ void load(const In* in, const AnyPowers& powers) {
    if (!is_whole()) return Any::load(in, powers);
    Whole whole;
    whole.load(in, place.columns, place.factor, place.input, powers);
    held.take(whole);
  }
  /// For a row that is loaded later.
  __device__ void prefetch(const In* in) const {
    if (threadIdx.x % kWarpThreads == 0) prefetch_to_l2(in, place.columns * sizeof(In));
  }
  template <class AnyPowers>
  __device__ Acc sum(const AnyPowers& powers) {
    if (!is_whole()) return sum_of(held, powers);
    Whole whole;
    whole.take(held);
    const Acc sum = sum_of_whole(whole, powers);
    held.take(whole);
    return sum;
  }
  template <class Weight>
  __device__ void store(const In*, Out* out, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
    if (is_whole()) store_of<Whole>(out, weight, norm);
    else store_of<typename Any::Held>(out, weight, norm);
  }

 private:
  __device__ bool is_whole() const { return kMayBeWhole && place.columns == kWarpThreads * kUnroll * kPack; }
  static __device__ Kept kept() { return Kept(dynamic_smem + threadIdx.x / kWarpThreads * kSmemBytes); }

  /// Weights are not compared with the lowest one if the warp has no element that is low. To find the smallest of 16-bit
  /// floats, two of which are compared at once, costs less than that.
  template <class AnyPowers>
  __device__ Acc sum_of_whole(Whole& whole, const AnyPowers& powers) const {
    if constexpr (kIsFloat16<In> && AnyPowers::kTurnsElements) {
      ExtremeElement<false, Acc, In> smallest;
      smallest.add(whole.packs);
      const bool has_low = __any_sync(kFullMask, smallest.value() < powers.lowest);
      return has_low ? sum_of(whole, powers) : sum_of(whole, powers.of_none_low());
    } else {
      return sum_of(whole, powers);
    }
  }

  template <class AnyHeld, class AnyPowers>
  __device__ Acc sum_of(AnyHeld& any, const AnyPowers& powers) const {
    Acc values[kChunks * kPack];
    any.template weigh<kInShared>(values, place.columns, powers, [&](unsigned u, const Acc (&weights)[kPack]) {
      if (u < kPacksInShared) kept().keep(u, any.packs[u], weights);
    });
    return fold_lanes<CanonicalSum<Acc>, kPack, kChunks, kWarpThreads>(values);
  }

  template <class AnyHeld, class Weight>
  __device__ void store_of(Out* out, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
    AnyHeld any;
    any.take(held);
    any.store(out, place.columns, weight, norm, [&](unsigned u) {
      if (u < kPacksInShared) kept().take(u, any);
    });
  }
};

/// How many of a warp's kChunks chunks have what results are made of, weights or elements, in shared memory. If half of
/// an SM's threads are resident, registers have room for two chunks of elements, and for one of weights that are twice
/// as wide. Code for logarithms of rows that begin anywhere would spill.
template <class Types, unsigned kChunks>
constexpr unsigned kChunksInShared =
    kChunks == 2 && (!Types::kLog || Types::kIsAligned) && sizeof(typename Types::Acc) == 2 * sizeof(typename Types::In)
        ? 1
        : 0;

template <class Types, unsigned kBlockThreads, unsigned kChunks, unsigned kClusterBlocks>
struct CanonicalSoftmaxBlock {
  static constexpr unsigned kElements = kChunkElements<typename Types::In>;
  static constexpr unsigned kHeldColumns = kBlockThreads / kWarpThreads * kChunks * kElements * kClusterBlocks;
  static constexpr unsigned kUnroll = kChunks * kElements / (kWarpThreads * Types::kPack);
  using Part = HeldPart<Types, kUnroll, kChunks, kChunksInShared<Types, kChunks>>;

  using CombineRow = CombineSoftmax<Types, kBlockThreads, kClusterBlocks, Exchange::receipts>;
  using Arguments = typename Types::Arguments;

  /// Inlined, because the compiler spills registers where it is a call.
  static __device__ __forceinline__ void run(const Arguments& all) {
    CombineRow combine;
    const unsigned run = 1u << all.run_levels;
    unsigned chunk = threadIdx.x / kWarpThreads * run, end = chunk + run;  // of the warp
    if constexpr (kClusterBlocks > 1) {
      end = (end < all.chunks ? end : all.chunks) + rank_in_cluster() * all.chunks;
      chunk += rank_in_cluster() * all.chunks;
    }
    const unsigned first = chunk * kElements, behind = end * kElements;
    const auto last = static_cast<unsigned>(all.columns < behind ? all.columns : behind);
    const unsigned columns = last < first ? 0 : last - first;
    const RowPart<typename Types::Acc> part{columns, all.scale.factor, all.input};
    if (run <= kChunks) write_rows(Part{{part}}, all, first, combine);
    else write_rows(LongRow<Types>{part, {}}, all, first, combine);
  }

 private:
  template <class AnyRow>
  static __device__ void write_rows(AnyRow part, const Arguments& all, unsigned first, CombineRow combine) {
    const typename Types::GuessedPowers guessed{all.guessed, all.scale.factor};
    const unsigned stride = CombineRow::groups();
    for (unsigned long long row = CombineRow::group(); row < all.rows; row += stride) {
      part.load(softmax_input<Types>(all, row) + first, guessed);
      if constexpr (kSame<AnyRow, Part>)
        if (row + stride < all.rows) part.prefetch(softmax_input<Types>(all, row + stride) + first);
      write_row(part, softmax_input<Types>(all, row) + first, softmax_output<Types>(all, row) + first, combine,
                guessed);
    }
  }
};

}  // namespace hone
