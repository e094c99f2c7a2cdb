// LongRow, the part of a row that a warp reads twice, for canonical_softmax.cuh and canonical_softmax_rows.cuh; and the
// results of a part that a block reads again.
#pragma once

#include "canonical_softmax_chunk.cuh"
#include "canonical_softmax_write.cuh"

namespace hone {

template <class Acc>
struct RowPart {
  unsigned columns;
  Acc factor;
  InputBytes input;
};

/// A Row of a warp that is longer than what it holds. At first it is read kAtOnce chunks at a time.
template <class Types_, unsigned kAtOnce = 1>
struct LongRow {
  using Types = Types_;
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Again = LongRow;
  static constexpr unsigned kOfLanes = kWarpThreads * Types::kPack, kElements = kChunkElements<In>;
  static constexpr unsigned kStep = Types::kIsAligned ? kOfLanes : kElements;  ///< chunks are turned as a whole
  template <bool kIsWhole>
  using Chunks = HeldChunks<Types, kWarpThreads, kAtOnce * kElements / kOfLanes, kAtOnce, false, kIsWhole>;
  template <bool kIsWhole>
  using Part = HeldChunks<Types, kWarpThreads, kStep / kOfLanes, 1, !Types::kLog, kIsWhole>;
  using Tree = RunTree<SoftmaxWeight<Types>, unsigned>;
  static constexpr bool kIsApart = false;
  using Place = RowPart<Acc>;

  Place place;
  typename SoftmaxSum<Types>::State found;

  template <class AnyPowers>
  __device__ void load(const In* in, const AnyPowers& powers) {
    Tree tree;
    Acc heaviest = HeaviestElement<Types>::absent();
#pragma unroll 1
    for (unsigned i = 0; i < place.columns; i += kAtOnce * kElements) {
      const unsigned columns = place.columns - i;
      if (Types::kIsAligned && columns >= kAtOnce * kElements)
        add_chunks<true>(tree, heaviest, in + i, columns, powers);
      else add_chunks<false>(tree, heaviest, in + i, columns, powers);
    }
    found = {tree.root(), CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kWarpThreads>(heaviest)};
  }

  template <class AnyPowers>
  __device__ Acc sum(const AnyPowers&) const { return found.sum; }
  __device__ Acc heaviest() const { return found.heaviest; }

  template <class Weight>
  __device__ void store(const In* in, Out* out, const Weight& weight, const SoftmaxNorm<Acc>& norm) const {
#pragma unroll 1
    for (unsigned i = 0; i < place.columns; i += kStep) {
      const unsigned columns = place.columns - i;
      if (Types::kIsAligned && columns >= kStep) store_part<true>(in + i, out + i, columns, weight, norm);
      else store_part<false>(in + i, out + i, columns, weight, norm);
    }
  }

 private:
  template <bool kIsWhole, class AnyPowers>
  __device__ void add_chunks(Tree& tree, Acc& heaviest, const In* in, unsigned columns, const AnyPowers& powers) const {
    Chunks<kIsWhole> chunks;
    chunks.load(in, columns, place.factor, place.input, powers);
    heaviest = larger<false>(heaviest, largest_of<Acc>(chunks.packs));
    Acc values[kAtOnce * Types::kPack];
    chunks.weigh(values, columns, powers);
    constexpr unsigned kLevel = kAtOnce > 4 ? 3 : kAtOnce / 2;
    static_assert(1u << kLevel == kAtOnce);
    tree.template push<kLevel>(fold_lanes<CanonicalSum<Acc>, Types::kPack, kAtOnce>(values));
  }

  template <bool kIsWhole, class Weight>
  __device__ void store_part(const In* in, Out* out, unsigned columns, const Weight& weight,
                             const SoftmaxNorm<Acc>& norm) const {
    Part<kIsWhole> part;
    part.load(in, columns, place.factor, place.input, weight.powers);
    if constexpr (!Types::kLog) {
      Acc values[Types::kPack];
      part.weigh(values, columns, weight.powers);
    }
    part.store(out, columns, weight, norm);
  }
};

/// Writes the results of elements begin … end − 1 of a row. Where rows are aligned, `begin` is a multiple of a pack. The
/// block calls it.
template <unsigned kBlockThreads, class Weight>
__device__ void write_range(const typename Weight::In* in, typename Weight::Out* out, unsigned long long begin,
                            unsigned long long end, const Weight& weight, const typename Weight::Norm& norm) {
  using In = typename Weight::In;
  using InPack = typename Weight::InPack;
  using OutPack = typename Weight::OutPack;
  constexpr unsigned kPack = InPack::kElements, kAtOnce = 4, kStep = kBlockThreads * kPack;
  const unsigned unaligned = Weight::kIsAligned ? 0 : elements_before_alignment<sizeof(InPack)>(in + begin);
  const unsigned head = at_most(end - begin, unaligned);
  const bool in_step = Weight::kIsAligned || elements_before_alignment<sizeof(OutPack)>(out + begin) == unaligned;
  const auto load = [&](unsigned long long i) { return load_streaming(reinterpret_cast<const InPack*>(in + i)); };
  const auto store = [&](unsigned long long i, const InPack& pack) {
    const OutPack results = weight.results(pack, norm);
    if (in_step) store_streaming(reinterpret_cast<OutPack*>(out + i), results);
    else unrolled<kPack>([&](unsigned e) { out[i + e] = results[e]; });
  };
  unsigned long long i = begin + head + threadIdx.x * kPack;
  for (; i + (kAtOnce - 1) * kStep + kPack <= end; i += kAtOnce * kStep) {
    // All loads come first: the compiler cannot know that stores do not change what is loaded.
    Array<InPack, kAtOnce> packs([&](unsigned u) { return load(i + u * kStep); });
    weight.powers.turn(packs.values);
#pragma unroll
    for (unsigned u = 0; u < kAtOnce; ++u) store(i + u * kStep, packs.values[u]);
  }
  for (; i + kPack <= end; i += kStep) {
    InPack pack[1] = {load(i)};
    weight.powers.turn(pack);
    store(i, pack[0]);
  }
  // The threads before the last ones have the elements before the packs, and those behind them.
  const unsigned long long packed = begin + head, behind = packed + (end - packed) / kPack * kPack;
  const unsigned long long single = threadIdx.x < head ? begin + threadIdx.x : behind + (threadIdx.x - head);
  if (single < end) {
    Pack<In, 1> element[1] = {Pack<In, 1>::filled(in[single])};
    weight.powers.turn(element);
    out[single] = weight.result(element[0][0], norm);
  }
}

}  // namespace hone
