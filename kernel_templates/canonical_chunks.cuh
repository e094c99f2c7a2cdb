// CanonicalChunks: the chunks of an array that begins at any address, read by aligned packs.
//
// Packs are numbered from the first aligned one, and chunk c takes P = C / kPack of them from c·P on. If the array
// begins `head` elements before an aligned address, the last of these packs ends with the first `head` elements of
// chunk c + 1; those of chunk c end the pack before its first one. The two ends make one pack: the chunk with its
// residues rotated by `head`, which is folded to the same result. Chunks with packs that reach beyond the array are
// read element by element.
#pragma once

#include "canonical_group.cuh"
#include "monoids.cuh"
#include "pack_range.cuh"

namespace hone {

/// The first `bytes` bytes of a pack of another one's: whole words are chosen by masks, which all lanes prepare once.
template <class ElementPack>
struct PackMask {
  Words<ElementPack> mask;

  static __device__ PackMask of_first(unsigned bytes) {
    PackMask result;
#pragma unroll
    for (unsigned w = 0; w < sizeof(ElementPack) / 4; ++w)
      result.mask.words[w] = bytes >= 4 * w + 4 ? ~0u : bytes <= 4 * w ? 0 : (1u << 8 * (bytes - 4 * w)) - 1;
    return result;
  }

  /// The first bytes of `pack`, then the others of `end`.
  __device__ ElementPack joined(const ElementPack& pack, const ElementPack& end) const {
    auto words = Words<ElementPack>(pack);
    const auto others = Words<ElementPack>(end);
#pragma unroll
    for (unsigned w = 0; w < sizeof(ElementPack) / 4; ++w)
      words.words[w] = (words.words[w] & mask.words[w]) | (others.words[w] & ~mask.words[w]);
    return words.value();
  }
};

template <class ElementPack>
struct PairMask : PackMask<decltype(ElementPack::a)> {
  static __device__ PairMask of_first(unsigned bytes) { return {PackMask<decltype(ElementPack::a)>::of_first(bytes)}; }
  __device__ ElementPack joined(const ElementPack& pack, const ElementPack& end) const {
    using One = PackMask<decltype(ElementPack::a)>;
    return {One::joined(pack.a, end.a), One::joined(pack.b, end.b)};
  }
};

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
  static_assert(kLanePacks >= 1 && (kChunks & (kChunks - 1)) == 0);

  /// `op` is an object if what a leaf is depends on the call.
  __device__ CanonicalChunks(const Source& source, Index n, const Op& op = {})
      : op_(op), source_(source), n_(n), chunks_((n + kElements - 1) / kElements), head_(source.unaligned()) {
    packs_ = n < head_ ? 0 : (n - head_) / kPack;
    const bool is_last_lane = threadIdx.x % kWarpThreads == kWarpThreads - 1;
    if constexpr (kIsRotated) {
      if (head_ != 0) mask_ = Mask::of_first((kPack - (is_last_lane ? head_ : 0)) * kElementBytes);
    }
  }

  __device__ Index count() const { return chunks_; }

  /// The tree of all chunks, as of_run().
  __device__ State whole() const {
    Index count = kChunks;
    while (count < chunks_) count *= 2;
    return of_run(0, count);
  }

  /// The tree of the chunks from `first` on, a multiple of `count`, which is a power of two and at least kChunks.
  /// All lanes of a warp call it with the same numbers, and get the result.
  __device__ State of_run(Index first, Index count) const {
    RunTree<Op, Index> tree;
    const Index end = chunks_ < first ? first : chunks_ - first < count ? chunks_ : first + count;
    for (Index chunk = first; chunk < end;) {
      // A loop of its own, so that its code follows what is ahead of it, and that for single elements is behind.
      for (; chunk < end && is_inner(chunk); chunk += kChunks) {
        const State state = of_batch(chunk);
        if (count == kChunks) return state;
        tree.template push<kBatchLevel>(state);
      }
#pragma unroll 1
      for (unsigned k = 0; k < kChunks && chunk < end; ++k, ++chunk) tree.template push<0>(of_elements(chunk));
    }
    return tree.root();
  }

 private:
  static constexpr unsigned kElementBytes = sizeof(typename Op::In);
  static constexpr unsigned kBatchLevel = kChunks == 1 ? 0 : kChunks == 2 ? 1 : kChunks == 4 ? 2 : 3;
  static_assert(kChunks <= 8);
  static constexpr bool kIsRotated = kPack > 1;
  template <class T>
  static constexpr bool kIsPair = requires { &T::b; };
  struct NoMask {};
  using Mask = typename Select<
      !kIsRotated, NoMask,
      typename Select<kIsPair<ElementPack>, PairMask<ElementPack>, PackMask<ElementPack>>::type>::type;

  /// True if all packs of the batch lie inside the array.
  __device__ bool is_inner(Index chunk) const {
    return (head_ == 0 || chunk != 0) && (chunk + kChunks) * kPacks <= packs_;
  }

  __device__ State of_batch(Index chunk) const {
    const unsigned lane = threadIdx.x % kWarpThreads;
    const Source from = source_.behind(head_ + (chunk * kPacks + lane) * kPack);
    ElementPack packs[kChunks][kLanePacks];
#pragma unroll
    for (unsigned k = 0; k < kChunks; ++k)
#pragma unroll
      for (unsigned u = 0; u < kLanePacks; ++u)
        packs[k][u] = from.pack(0, static_cast<int>(k * kPacks + u * kWarpThreads));
    if constexpr (kIsRotated) {
      if (head_ != 0) rotate(packs, from);
    }
    if constexpr (kIsByChunk<Op>) {
      State of_chunk[kChunks];
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k)
        of_chunk[k] = chunk_of_lanes<Op, kLanePacks, kPack, kWarpThreads, true>(
            [&](unsigned u, unsigned e) { return Op::present(Op::prepared(packs[k][u])[e], true); },
            [&](unsigned u, unsigned e) { return (head_ + (u * kWarpThreads + lane) * kPack + e) % kElements; },
            [&] { return source_.element((chunk + k) * kElements); });
      return combine_tree<Op, kChunks>(of_chunk);
    } else {
      State values[kChunks * kPack];
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k) {
        decltype(Op::prepared(packs[k][0])) prepared[kLanePacks];
#pragma unroll
        for (unsigned u = 0; u < kLanePacks; ++u) prepared[u] = Op::prepared(packs[k][u]);
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          values[k * kPack + e] = fold_leaves<Op, kLanePacks>([&](unsigned u) { return op_.leaf(prepared[u][e]); });
      }
      return fold_lanes<Op, kPack, kChunks>(values);
    }
  }

  /// Exchanges the ends of last packs, which belong to the chunk behind, for those that belong to the chunk itself.
  __device__ void rotate(ElementPack (&packs)[kChunks][kLanePacks], const Source& from) const {
    ElementPack before = packs[0][kLanePacks - 1];
    if (threadIdx.x % kWarpThreads == kWarpThreads - 1) before = from.pack(0, -static_cast<int>(kWarpThreads));
#pragma unroll
    for (unsigned k = kChunks; k-- > 0;) {
      ElementPack& last = packs[k][kLanePacks - 1];
      last = mask_.joined(last, k == 0 ? before : packs[k - 1][kLanePacks - 1]);
    }
  }

  /// A chunk of which not all elements need be there.
  __device__ State of_elements(Index chunk) const {
    constexpr unsigned kRounds = kElements / kWarpThreads;
    const unsigned lane = threadIdx.x % kWarpThreads;
    const Index first = chunk * kElements + lane;
    const auto is_there = [&](unsigned u) { return first + u * kWarpThreads < n_; };
    const auto element = [&](unsigned u) { return Op::prepared(source_.element(first + u * kWarpThreads)); };
    return chunk_of_elements<Op, kRounds>(op_, element, is_there);
  }

  Op op_;
  Source source_;
  Index n_, chunks_, packs_;
  unsigned head_;  ///< elements before the first pack
  Mask mask_;  ///< if head_ is not 0
};

}  // namespace hone
