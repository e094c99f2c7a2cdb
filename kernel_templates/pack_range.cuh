// PackRange: elements that begin at any address, of one array or of the pairs of two, as single elements, aligned packs
// and single elements behind the last full pack; and the loops of threads over tiles of packs.
#pragma once

#include "arrays.cuh"
#include "lanes.cuh"

namespace hone {

/// A strided loop over full tiles: loads each once, in order, and accumulates it; returns the first that is not full.
/// kLoadsAhead: double buffering, the next tile is loaded before this one is accumulated. kFewTiles: the first
/// iteration is peeled, so that the compiler can simplify it for the initial State; for many tiles that costs more.
template <bool kLoadsAhead, bool kFewTiles, class Tile, class Index, class IsFull, class Load, class Accumulate>
__device__ Index for_each_full_tile(Index first, Index stride, const IsFull& is_full, const Load& load,
                                    const Accumulate& accumulate) {
  if constexpr (kLoadsAhead && kFewTiles) {
    if (!is_full(first)) return first;
    Tile tile, next;
    const auto accumulate_and_load_next = [&] {
      const bool goes_on = is_full(first + stride);
      if (goes_on) load(next, first + stride);
      accumulate(tile, first);
      first += stride;
      return goes_on;
    };
    load(tile, first);
    for (bool goes_on = accumulate_and_load_next(); goes_on; goes_on = accumulate_and_load_next()) tile = next;
  } else if constexpr (kLoadsAhead) {
    Tile next;
    if (is_full(first)) load(next, first);
    for (; is_full(first); first += stride) {
      const Tile tile = next;
      if (is_full(first + stride)) load(next, first + stride);
      accumulate(tile, first);
    }
  } else {
    for (; is_full(first); first += stride) {
      Tile tile;
      load(tile, first);
      accumulate(tile, first);
    }
  }
  return first;
}

/// True if the tail is padded to a full tile, with copies of its first pack or with neutral().
template <class Op> inline constexpr bool kPadsTail = Op::kIdempotent || Op::kHasNeutral;

/// True if packs of the tail are better combined one by one than loaded in several copies. Bytes are combined four at a
/// time. The maximum of 4096 floats by 256 threads x 8 took 1.41 µs with copies, the sum 1.29 without (H100, CUDA
/// 13.0, 26 November 2026).
template <class Op>
inline constexpr bool kCopiesCostMore = Op::kIdempotent && Op::kCombinesFast && sizeof(typename Op::In) > 1;

/// `n` elements of a Source, which is OneArray or TwoArrays. The first one has index `origin`.
template <class Source_, class Index_>
struct PackRange {
  using Source = Source_;
  using Index = Index_;
  using ElementPack = typename Source::ElementPack;
  static constexpr unsigned kPackElements = ElementPack::kElements;

  Source source;
  Index n, origin;
  Index head;  ///< single elements before the packs
  Index packs;

  /// Without kMayBeUnaligned the first element begins a pack.
  template <bool kMayBeUnaligned = true>
  static __device__ PackRange of(const Source& source, Index n, Index origin = 0) {
    const Index unaligned = kMayBeUnaligned ? source.unaligned() : 0;
    const Index head = unaligned < n ? unaligned : n;
    return {source, n, origin, head, (n - head) / kPackElements};
  }

  /// The packs before the first multiple of 256 bytes. Where the loads of a warp straddle such addresses, sums of f32
  /// read 1.5 GB at 0.97 and 5.6 GB at 0.93 of the speed, those of f64 11 GB at 0.90 (H100, CUDA 13.0, 2026-11-26).
  template <unsigned kThreads>
  __device__ unsigned packs_before_line() const {
    constexpr unsigned kLineBytes = 256;
    if constexpr (kLineBytes > kThreads * Source::kPackBytes) return 0;
    const unsigned before = source.behind(head).template unaligned<kLineBytes>() / kPackElements;
    return before < packs ? before : static_cast<unsigned>(packs);
  }

  __device__ ElementPack pack(Index p) const { return source.pack(head, p); }
  __device__ Index singles() const { return n - packs * kPackElements; }
  /// The position of single element `number`; from singles() on, n or more.
  __device__ Index single(Index number) const { return number < head ? number : packs * kPackElements + number; }
  __device__ Index index_of_pack(Index p) const { return origin + head + p * kPackElements; }

  /// Loads the packs first, first + stride, … that are there. If kPads, the others are padded.
  template <class Op, bool kPads = kPadsTail<Op>, unsigned kPacks>
  __device__ void load_tail(ElementPack (&tile)[kPacks], Index first, Index stride) const {
#pragma unroll
    for (unsigned u = 0; u < kPacks; ++u) {
      const Index p = first + u * stride;
      if constexpr (kPads && Op::kIdempotent) {
        if (first < packs) tile[u] = pack(p < packs ? p : first);
      } else {
        if (p < packs) tile[u] = pack(p);
        else if constexpr (Op::kHasNeutral) tile[u] = ElementPack::filled(Op::neutral());
      }
    }
  }

  /// Accumulates the packs that load_tail() loaded.
  template <class Op, bool kPads = kPadsTail<Op>, unsigned kPacks>
  __device__ void accumulate_tail(typename Op::State& state, const ElementPack (&tile)[kPacks], Index first,
                                  Index stride) const {
    if constexpr (kPads) {
      if (first < packs) Op::accumulate(state, tile, index_of_pack(first), stride * kPackElements);
    } else {
      unrolled<kPacks>([&](unsigned u) {
        const ElementPack one[1] = {tile[u]};
        if (first + u * stride < packs) Op::accumulate(state, one, index_of_pack(first + u * stride), Index(0));
      });
    }
  }

  template <unsigned kThreads> static constexpr bool kOneSingle = kThreads >= 2 * kPackElements;

  /// The single element of a thread, if kOneSingle: loaded while packs are in flight, it adds no latency.
  struct Single {
    bool is_there;
    decltype(Source{}.element(Index(0))) element;
  };
  template <unsigned kThreads>
  __device__ Single load_single(unsigned rank, bool has_any) const {
    Single loaded{.is_there = has_any && rank < singles()};
    if constexpr (kOneSingle<kThreads>)
      if (loaded.is_there) loaded.element = source.element(single(rank));
    return loaded;
  }

  /// Accumulates the single elements of thread `rank` of kThreads, of which load_single() returned the first.
  template <class Op, unsigned kThreads>
  __device__ void accumulate_singles(typename Op::State& state, const Single& first, unsigned rank) const {
    const Index behind = first.is_there ? singles() : 0;
    for (Index number = rank; number < behind; number += kThreads) {
      const Index i = single(number);
      state = Op::combine(state, Op::of(kOneSingle<kThreads> ? first.element : source.element(i), origin + i));
      if constexpr (kOneSingle<kThreads>) return;
    }
  }

  /// Accumulates the share of thread `rank` of kThreads, whole warps, in block `block` of the `blocks` that share the
  /// range: tiles of kUnroll packs in a grid-stride loop, then the tail. The last warp of the last block, whose last
  /// tile is seldom full, has the single elements: it loads them with its tail, where others would wait for a full tile
  /// first. kReadsLines: the loop begins with a line; the packs before it are the last block's, which may have fewer
  /// tiles.
  template <class Op, unsigned kThreads, unsigned kUnroll, bool kReadsLines = false>
  __device__ void accumulate_share(typename Op::State& state, unsigned rank, unsigned block, unsigned blocks) const {
    struct Tile {
      ElementPack packs[kUnroll];
    };
    constexpr unsigned kTilePacks = kThreads * kUnroll;
    const unsigned before_line = kReadsLines ? packs_before_line<kThreads>() : 0;
    const Index to_last_lane = kWarpThreads - 1 - rank % kWarpThreads;  // the loop is uniform in a warp
    const unsigned from_last = kThreads - 1 - rank;
    const auto is_full = [&](Index p) { return p + to_last_lane + (kUnroll - 1) * kThreads < packs; };
    Index first = before_line + static_cast<Index>(block) * kTilePacks + rank;
    if (is_full(first)) {
      first = for_each_full_tile<Op::kComputeBound, false, Tile>(
          first, static_cast<Index>(blocks) * kTilePacks, is_full,
          [&](Tile& tile, Index p) {
            unrolled<kUnroll>([&](unsigned u) { tile.packs[u] = pack(p + u * kThreads); });
          },
          [&](const Tile& tile, Index p) {
            Op::template accumulate<true>(state, tile.packs, index_of_pack(p), Index(kThreads * kPackElements));
          });
      // Most warps are done. The instructions for a tail that is not there would take up to 0.2 µs of 4.3: sums of 2^20
      // floats by a ticket (H100, CUDA 13.0, 27 November 2026).
      const bool has_tail = first + to_last_lane - (kWarpThreads - 1) < packs;
      const bool has_singles = block == blocks - 1 && from_last - to_last_lane < singles();
      if (!has_tail && !has_singles && before_line == 0) return;
    }
    ElementPack tile[kUnroll];
    constexpr bool kPads = kPadsTail<Op> && !kCopiesCostMore<Op>;
    load_tail<Op, kPads>(tile, first, Index(kThreads));
    const Single single = load_single<kThreads>(from_last, block == blocks - 1);
    accumulate_tail<Op, kPads>(state, tile, first, Index(kThreads));
    accumulate_singles<Op, kThreads>(state, single, from_last);
    if (block == blocks - 1 && rank < before_line) {
      const ElementPack one[1] = {pack(rank)};
      typename Op::State before = Op::identity();  // apart, since their indices are lower than those of `state`
      Op::accumulate(before, one, index_of_pack(rank), Index(0));
      state = Op::combine(before, state);
    }
  }
};

}  // namespace hone
