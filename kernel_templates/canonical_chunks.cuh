// CanonicalChunks: the chunks of an array that begins at any address, read by aligned packs.
//
// Packs are numbered from the first aligned one, and chunk c takes P = C / kPack of them from c·P on. If the array
// begins `head` elements before an aligned address, the last of these packs ends with the first `head` elements of
// chunk c + 1; those of chunk c end the pack before its first one. The two ends make one pack: the chunk with its
// residues rotated by `head`, which is folded to the same result. Of packs that reach beyond the array single elements
// are read; absent_element(), if the operation has one, takes the place of the others.
#pragma once

#include "canonical_group.cuh"
#include "canonical_packs.cuh"
#include "monoids.cuh"
#include "pack_range.cuh"

namespace hone {

/// `n` elements of a Source, which is OneArray or TwoArrays. kChunks is the number of chunks that a warp has in flight,
/// a batch: a power of two.
template <class Op, class Source, unsigned kChunks>
class CanonicalChunks {
 public:
  using State = typename Op::State;
  using Index = typename Op::Index;
  using ElementPack = typename Source::ElementPack;
  static constexpr unsigned kPack = ElementPack::kElements;
  static constexpr unsigned kElements = kChunkElements<typename Op::In>;
  static constexpr unsigned kPacks = kElements / kPack;
  static constexpr unsigned kLanePacks = kPacks / kWarpThreads;
  static_assert(kLanePacks >= 1 && kChunks <= 8 && (kChunks & (kChunks - 1)) == 0);

  /// `op` is an object if what a leaf is depends on the call.
  __device__ CanonicalChunks(const Source& source, Index n, const Op& op = {})
      : op_(op), source_(source), n_(n), chunks_((n + kElements - 1) / kElements), head_(source.unaligned()) {
    packs_ = n < head_ ? 0 : (n - head_) / kPack;
    const bool is_last_lane = threadIdx.x % kWarpThreads == kWarpThreads - 1;
    if constexpr (kIsRotated)
      if (head_ != 0) mask_ = Mask::of_first((kPack - (is_last_lane ? head_ : 0)) * kElementBytes);
  }

  __device__ Index count() const { return chunks_; }

  /// The tree of all chunks, as of_run().
  __device__ State whole() const {
    Index count = kChunks;
    while (count < chunks_) count *= 2;
    return of_run(0, count);
  }

  /// True if all packs of the batch that begins with a chunk lie inside the array.
  __device__ bool is_whole(Index chunk) const {
    return (head_ == 0 || chunk != 0) && (chunk + kChunks) * kPacks <= packs_;
  }

  /// The tree of such a batch, as of_run().
  __device__ State of_whole(Index chunk) const { return of_batch<kChunks, true>(chunk); }

  /// The tree of the chunks from `first` on, a multiple of `count`, which is a power of two and at least kChunks.
  /// All lanes of a warp call it with the same numbers, and get the result.
  __device__ State of_run(Index first, Index count) const {
    // Without loop and tree of runs, the sum of 1500 halves takes 1.44 µs instead of 1.51 (H100, graph, 2026-11-27).
    if (kFills && kChunks == 1 && count == 1)
      return first < chunks_ ? of_batch<1, false>(first) : Op::absent();
    RunTree<Op, Index> tree;
    const Index end = first + count;
    Index chunk = first;
    do {
      if (is_whole(chunk)) {
        const State state = of_whole(chunk);
        if (kIsByChunk<Op> && kChunks == 1 && count == 1) return state;  // a run of one chunk needs no tree
        tree.template push<kLevels<kChunks>>(state);
        chunk += kChunks;
      } else {
        if (chunk >= chunks_) break;
#pragma unroll 1
        for (unsigned k = 0; k < kChunks; k += kCutChunks, chunk += kCutChunks)
          if (chunk < chunks_) tree.template push<kLevels<kCutChunks>>(of_batch<kCutChunks, false>(chunk));
      }
    } while (chunk != end);
    return tree.root();
  }

 private:
  static constexpr unsigned kElementBytes = sizeof(typename Op::In);
  template <unsigned kCount>
  static constexpr unsigned kLevels = kCount == 1 ? 0 : kCount == 2 ? 1 : kCount == 4 ? 2 : 3;
  /// Batches of which not all elements are there are made in two halves: to know which ones are takes registers.
  static constexpr unsigned kCutChunks = kChunks > 1 ? kChunks / 2 : 1;
  static constexpr bool kIsRotated = kPack > 1;
  using Element = decltype(Source{}.element(Index(0)));
  /// True if elements that are not there can be replaced by some that change no result.
  static constexpr bool kFills = requires { Op::template absent_element<Element>(); };
  struct NoMask {};
  using Mask = typename Select<!kIsRotated, NoMask, typename MaskOf<ElementPack>::type>::type;

  /// The tree of kCount chunks, of which the first is there. kIsWhole: so are all of their elements.
  template <unsigned kCount, bool kIsWhole>
  __device__ State of_batch(Index chunk) const {
    unsigned lane = threadIdx.x % kWarpThreads;
#ifndef HONE_HOST_DEVICE
    // Unknown to the compiler, which would compute ahead of loops, and of all loads, what follows from it.
    if constexpr (!kIsWhole) asm volatile("" : "+r"(lane));
#endif
    ElementPack packs[kCount][kLanePacks];
    load<kCount, kIsWhole>(packs, chunk * kPacks, lane);
    constexpr bool kIsFull = kIsWhole || kFills;
    const unsigned left = kIsFull ? 0 : at_most(n_ - chunk * kElements, kCount * kElements);
    const auto number = [&](unsigned u, unsigned e) {
      return (head_ + (u * kWarpThreads + lane) * kPack + e) % kElements;
    };
    const auto is_there = [&](unsigned k, unsigned u, unsigned e) {
      return kIsFull || k * kElements + number(u, e) < left;
    };
    if constexpr (kIsByChunk<Op>) {
      State of_chunk[kCount];
#pragma unroll
      for (unsigned k = 0; k < kCount; ++k) {
        of_chunk[k] = Op::absent();
        if (kIsWhole || k * kElements < left)
          of_chunk[k] = chunk_of_lanes<Op, kLanePacks, kPack, kWarpThreads>(
              [&](unsigned u, unsigned e) { return Op::present(Op::prepared(packs[k][u])[e], is_there(k, u, e)); },
              number, [&] { return source_.element((chunk + k) * kElements); },
              kIsWhole ? kElements : at_most(left - k * kElements, kElements));
      }
      return combine_tree<Op, kCount>(of_chunk);
    } else {
      State values[kCount * kPack];
#pragma unroll
      for (unsigned k = 0; k < kCount; ++k) {
        decltype(Op::prepared(packs[k][0])) prepared[kLanePacks];
#pragma unroll
        for (unsigned u = 0; u < kLanePacks; ++u) prepared[u] = Op::prepared(packs[k][u]);
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          values[k * kPack + e] = fold_leaves<Op, kLanePacks>(
              [&](unsigned u) { return is_there(k, u, e) ? op_.leaf(prepared[u][e]) : Op::absent(); });
      }
      return fold_lanes<Op, kPack, kCount, kWarpThreads, (kPack < 4 ? kPack : 4)>(values);
    }
  }

  /// Loads the lane's packs of a batch that begins with pack `first`. The ends of last packs, which belong to the chunk
  /// behind, are exchanged for those that belong to the chunk itself.
  template <unsigned kCount, bool kIsWhole>
  __device__ void load(ElementPack (&packs)[kCount][kLanePacks], Index first, unsigned lane) const {
    const Source from = source_.behind(head_ + (first + lane) * kPack);
#pragma unroll
    for (unsigned k = 0; k < kCount; ++k)
#pragma unroll
      for (unsigned u = 0; u < kLanePacks; ++u) {
        const unsigned number = k * kPacks + u * kWarpThreads;
        if (kIsWhole || first + lane + number < packs_) packs[k][u] = from.pack(0, static_cast<int>(number));
        else packs[k][u] = no_elements();
      }
    if constexpr (!kIsWhole) {
      // Asked for while the others are in flight. Settled, so that the addresses of the cut pack, which depend on no
      // batch, are not computed ahead of loops, behind the fold of a whole batch.
      const Index whole = settled(packs_ - first);  // packs: perhaps more than the batch has, or −1
      if (whole % kWarpThreads == lane) {
        const ElementPack cut = cut_pack(first + whole);
#pragma unroll
        for (unsigned k = 0; k < kCount; ++k)
#pragma unroll
          for (unsigned u = 0; u < kLanePacks; ++u)
            if (whole == k * kPacks + u * kWarpThreads + lane) packs[k][u] = cut;
      }
    }
    if constexpr (kIsRotated) {
      if (head_ == 0) return;
      ElementPack before = packs[0][kLanePacks - 1];
      if (lane == kWarpThreads - 1)
        before = kIsWhole || first - 1 < packs_ ? from.pack(0, -static_cast<int>(kWarpThreads)) : cut_pack(first - 1);
#pragma unroll
      for (unsigned k = kCount; k-- > 0;) {
        ElementPack& last = packs[k][kLanePacks - 1];
        last = mask_.joined(last, k == 0 ? before : packs[k - 1][kLanePacks - 1]);
      }
    }
  }

  static __device__ ElementPack no_elements() {
    ElementPack elements = {};
    if constexpr (kFills)
      unrolled<kPack>([&](unsigned e) { set_element(elements, e, Op::template absent_element<Element>()); });
    return elements;
  }

  /// The elements of a pack that are there, and no_elements() for the others.
  __device__ ElementPack cut_pack(Index pack) const {
    ElementPack elements = no_elements();
    unrolled<kPack>([&](unsigned e) {
      const Index i = head_ + pack * kPack + e;  // of the pack before the first one wrapped around
      if (i < n_) set_element(elements, e, source_.element(i));
    });
    return elements;
  }

  Op op_;
  Source source_;
  Index n_, chunks_, packs_;
  unsigned head_;  ///< elements before the first pack
  Mask mask_;  ///< if head_ is not 0
};

}  // namespace hone
