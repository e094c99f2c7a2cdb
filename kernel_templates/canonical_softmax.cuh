// Softmax, or its logarithm, of rows with the same bits for every policy, number of rows, pitch, alignment and device.
//
// Weights are exponentials of IEEE operations alone (canonical_powers.cuh), and their sum is the canonical tree over the
// row's elements. Four ways, by the length of a row:
//
//   CanonicalSoftmaxLanes   kLanes neighbouring lanes hold a row in registers, kUnroll packs each: at most a chunk, or
//                           a few chunks if they are a warp.
//   CanonicalSoftmaxBlock   the warps of a block, or of a cluster, hold a row in registers. They share its chunks
//                           evenly: each takes 2^run_levels of them, and a block arguments.chunks. Where those are more
//                           than kChunks, the row is read twice.
//   CanonicalSoftmaxShared  (canonical_softmax_shared.cuh) a warp, a block or a cluster holds a row in shared memory.
//   CanonicalSoftmaxRows    (canonical_softmax_rows.cuh) rows of any length are read twice.
//
// May be in place. Constraints: kBlockThreads is a power of two; rows begin at multiples of kPack elements in both
// arrays, and what lanes or shared memory hold is whole rows; kChunks · kPack ≤ 32.
#pragma once

#include "canonical_softmax_chunk.cuh"
#include "canonical_softmax_write.cuh"

namespace hone {

template <class Acc>
struct RowPart {
  unsigned columns;
  Acc factor;
};

/// A Row in registers.
template <class Types, unsigned kLanes, unsigned kUnroll, unsigned kChunks>
struct HeldRow {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Weight = SoftmaxWeight<Types>;
  using Held = HeldChunks<Types, kLanes, kUnroll, kChunks>;
  static constexpr bool kIsApart = true;

  using Place = RowPart<Acc>;

  Place place;
  typename Types::InPack packs[kUnroll];
  Held held;

  __device__ void load(const In* in, const Powers<Acc>&) { load_part(in, place.columns); }
  __device__ void load_part(const In* in, unsigned columns) { Held::load_packs(packs, in, columns, place.factor); }

  __device__ typename SoftmaxSum<Types>::State state(const Powers<Acc>& powers) {
    const Acc heaviest = heaviest_of<Acc>(packs, place.factor);
    return {weigh(place.columns, powers),
            CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kLanes>(heaviest)};
  }
  /// The sum of the lanes' weights.
  __device__ Acc weigh(unsigned columns, const Powers<Acc>& powers) {
    held.widen(packs);
    Acc values[kChunks * Types::kPack];
    held.weigh(values, columns, powers);
    return fold_lanes<CanonicalSum<Acc>, Types::kPack, kChunks, kLanes>(values);
  }

  __device__ void store(const In*, Out* out, const Weight& weight, const typename Weight::Norm& norm) const {
    held.store(out, place.columns, weight, norm);
  }
};

/// The grid-stride loop is over tiles of as many rows as a block has groups of lanes, times kRows: a group loads its
/// rows before it computes any.
template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kRows>
struct CanonicalSoftmaxLanes {
  static constexpr unsigned kGroups = kBlockThreads / kLanes, kHeldColumns = kLanes * kUnroll * Types::kPack;
  static constexpr unsigned kTileRows = kGroups * kRows, kChunk = kChunkElements<typename Types::In>;
  static constexpr unsigned kChunks = kHeldColumns > kChunk ? kHeldColumns / kChunk : 1;
  using Row = HeldRow<Types, kLanes, kUnroll, kChunks>;
  static_assert(kLanes == kWarpThreads || (kLanes < kWarpThreads && kChunks == 1));

  static __device__ void run(const typename Types::Arguments& all) {
    CombineSoftmax<Types, kLanes, 1, Exchange::barriers> combine;
    for (unsigned long long tile = blockIdx.x; tile * kTileRows < all.rows; tile += gridDim.x) {
      const unsigned long long first = tile * kTileRows + threadIdx.x / kLanes;
      Row rows[kRows];
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        const unsigned long long row = first + r * kGroups;
        rows[r].place = {row < all.rows ? static_cast<unsigned>(all.columns) : 0, all.scale.factor};
        rows[r].load_part(softmax_input<Types>(all, row), rows[r].place.columns);
      }
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        const unsigned long long row = first + r * kGroups;
        write_row(rows[r], softmax_input<Types>(all, row), softmax_output<Types>(all, row), combine);
      }
    }
  }
};

/// A Row of a warp that is longer than what it holds: it is read twice.
template <class Types>
struct LongRow {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kStep = kWarpThreads * Types::kPack, kElements = kChunkElements<In>;
  static constexpr unsigned kUnroll = kElements / kStep;
  static constexpr bool kIsApart = false;
  using Place = RowPart<Acc>;

  Place place;
  typename SoftmaxSum<Types>::State found;

  __device__ void load(const In* in, const Powers<Acc>& powers) {
    RunTree<Weight, unsigned> tree;
    Acc heaviest = HeaviestElement<Types>::absent();
    for_parts<kUnroll>(in, [&](unsigned, unsigned columns, const InPack (&packs)[kUnroll]) {
      heaviest = larger<false>(heaviest, heaviest_of<Acc>(packs, place.factor));
      HeldChunks<Types, kWarpThreads, kUnroll, 1, false> chunk;
      chunk.widen(packs);
      Acc values[Types::kPack];
      chunk.weigh(values, columns, powers);
      tree.template push<0>(fold_lanes<CanonicalSum<Acc>, Types::kPack>(values));
    });
    found = {tree.root(), CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kWarpThreads>(heaviest)};
  }

  __device__ auto state(const Powers<Acc>&) const { return found; }

  __device__ void store(const In* in, Out* out, const Weight& weight, const typename Weight::Norm& norm) const {
    for_parts<1>(in, [&](unsigned first, unsigned columns, const InPack (&packs)[1]) {
      HeldChunks<Types, kWarpThreads, 1> part;
      part.widen(packs);
      Acc values[Types::kPack];
      part.weigh(values, columns, weight.powers);
      part.store(out + first, columns, weight, norm);
    });
  }

 private:
  /// Calls act(first column, columns from there on, packs) for kPacks packs of a lane at a time.
  template <unsigned kPacks, class Act>
  __device__ void for_parts(const In* in, const Act& act) const {
#pragma unroll 1
    for (unsigned i = 0; i < place.columns; i += kPacks * kStep) {
      InPack packs[kPacks];
      HeldChunks<Types, kWarpThreads, kPacks>::load_packs(packs, in + i, place.columns - i, place.factor);
      act(i, place.columns - i, packs);
    }
  }
};

template <class Types, unsigned kBlockThreads, unsigned kChunks, unsigned kClusterBlocks>
struct CanonicalSoftmaxBlock {
  static constexpr unsigned kElements = kChunkElements<typename Types::In>;
  static constexpr unsigned kHeldColumns = kBlockThreads / kWarpThreads * kChunks * kElements * kClusterBlocks;
  using Row = HeldRow<Types, kWarpThreads, kChunks * kElements / (kWarpThreads * Types::kPack), kChunks>;

  using CombineRow = CombineSoftmax<Types, kBlockThreads, kClusterBlocks, Exchange::receipts>;
  using Arguments = typename Types::Arguments;

  static __device__ void run(const Arguments& all) {
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
    if (run <= kChunks) write_rows(Row{{columns, all.scale.factor}}, all, first, combine);
    else write_rows(LongRow<Types>{{columns, all.scale.factor}, {}}, all, first, combine);
  }

 private:
  template <class AnyRow>
  static __device__ void write_rows(AnyRow part, const Arguments& all, unsigned first, CombineRow combine) {
    const Powers<typename Types::Acc> relative_to_1(all.scale.factor);
    for (unsigned long long row = blockIdx.x / kClusterBlocks; row < all.rows; row += gridDim.x / kClusterBlocks) {
      part.load(softmax_input<Types>(all, row) + first, relative_to_1);
      write_row(part, softmax_input<Types>(all, row) + first, softmax_output<Types>(all, row) + first, combine);
    }
  }
};

}  // namespace hone
