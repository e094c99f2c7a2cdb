// Extremes and their indices: minmax, argmin, argmax.
#pragma once

#include "reduction.cuh"

namespace hone {

template <class Acc>
struct Extremes {
  Acc min, max;
};

/// Both at once: min and max one after the other (Fused) would keep all converted elements of a tile in registers.
template <class In, class Acc, class Index, bool kIgnoreNan>
struct MinMax : Reduction<MinMax<In, Acc, Index, kIgnoreNan>, In, Extremes<Acc>, Index> {
  using State = Extremes<Acc>;
  static constexpr bool kIdempotent = true;
  static constexpr bool kCombinesFast = true;

  static __device__ State identity() { return {bound_of<true, Acc, In>(), bound_of<false, Acc, In>()}; }
  static __device__ State combine(State a, State b) {
    return {smaller<kIgnoreNan>(a.min, b.min), larger<kIgnoreNan>(a.max, b.max)};
  }
  static __device__ State of(In x, Index) {
    const Acc y = convert<Acc>(x);
    if (kIgnoreNan && is_nan(y)) return identity();
    return {y, y};
  }
  template <bool kWithWarp = false, class ElementPack, unsigned kPacks>
  static __device__ void accumulate(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    if constexpr (kInBytes<In, ElementPack>)
      state = combine(state, {convert<Acc>(extreme_of_bytes<false, In>(tile)),
                              convert<Acc>(extreme_of_bytes<true, In>(tile))});
    else Reduction<MinMax, In, State, Index>::accumulate(state, tile, first, stride);
  }
  template <class Out>
  static __device__ void write(State state, Index n, Out* out) {
    out[0] = convert<Out>(Unified::of(state.min, n));
    out[1] = convert<Out>(Unified::of(state.max, n));
  }
};

/// The largest element minus the smallest; 0 of none. Integers are subtracted modulo 2^64, where the range fits.
template <class In, class Acc, class Index, bool kIgnoreNan>
struct Range : MinMax<In, Acc, Index, kIgnoreNan> {
  template <class Out>
  static __device__ void write(Extremes<Acc> state, Index n, Out* out) {
    using Wide = typename Select<kIsFloating<Acc>, Acc, unsigned long long>::type;
    const Wide range = state.max < state.min ? Wide(0) : static_cast<Wide>(state.max) - static_cast<Wide>(state.min);
    *out = convert<Out>(Unified::of(range, n));
  }
};

/// A value's rank (the highest wins) and the lowest index with that value; the index is all ones if there is no value.
template <class Rank, class Index>
struct Located {
  Words<Rank> rank;
  Words<Index> index;
};

/// The index of the largest value, or of the smallest. A tile is first reduced by value alone; its index is looked up
/// only if the value comes before all values so far, which happens less and less often.
template <bool kLargest, class In, class Acc, class Index, bool kIgnoreNan>
struct ArgReduce
    : Reduction<ArgReduce<kLargest, In, Acc, Index, kIgnoreNan>, In, Located<RankOf<Acc>, Index>, Index> {
  using Rank = RankOf<Acc>;
  using State = Located<Rank, Index>;
  static constexpr WarpInstruction kWarpInstruction = WarpInstruction::several;
  static constexpr bool kIsIndexed = true;
  static constexpr bool kIdempotent = true;
  static constexpr Index kNowhere = static_cast<Index>(-1);

  static __device__ State identity() { return {Rank(0), kNowhere}; }

  static __device__ State of(In x, Index i) {
    const Acc value = convert<Acc>(x);
    return kIgnoreNan && is_nan(value) ? identity() : State{rank_of(value), i};
  }

  static __device__ State combine(State a, State b) {
    const Rank of_a = a.rank, of_b = b.rank;
    const bool b_is_first = of_b > of_a || (of_b == of_a && b.index < a.index);
    return b_is_first ? b : a;
  }

  /// A full warp is reduced word by word from the top. Lanes that lost a word take no further part; all get the result.
  template <unsigned kLanes>
  static __device__ State of_lanes(State state) {
    if constexpr (!kHasWarpInstructions || kLanes != kWarpThreads) {
      return Reduction<ArgReduce, In, State, Index>::template of_lanes<kLanes>(state);
    } else {
      bool is_first = true;
      const auto narrow_to = [&](unsigned best, unsigned& word) {
        is_first = is_first && word == best;
        word = best;
      };
#pragma unroll
      for (unsigned w = sizeof(Rank) / 4; w-- > 0;)
        narrow_to(__reduce_max_sync(kFullMask, is_first ? state.rank.words[w] : 0u), state.rank.words[w]);
#pragma unroll
      for (unsigned w = sizeof(Index) / 4; w-- > 0;)
        narrow_to(__reduce_min_sync(kFullMask, is_first ? state.index.words[w] : ~0u), state.index.words[w]);
      return state;
    }
  }

  /// Bytes have few values, so the maximum is found soon. But each lane alone would look up the index of each of its
  /// own maxima, and with divergence some lane of the warp always does. So lanes share the warp's maximum and look up
  /// only values above it. `rank` is then the warp's in all lanes; `index` is kNowhere in lanes without the value.
  template <bool kWithWarp = false, class ElementPack, unsigned kPacks>
  static __device__ void accumulate(State& state, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    const Acc value = first_value(tile);
    if (kIgnoreNan && is_nan(value)) return;
    const Rank rank = rank_of(value), so_far = state.rank;
    if constexpr (kWithWarp && kHasWarpInstructions && kInBytes<In, ElementPack>) {
      static_assert(kSame<Acc, int>, "no byte may have the identity's rank");
      const Rank of_warp = __reduce_max_sync(kFullMask, rank);
      if (of_warp <= so_far) return;
      state = {of_warp, rank == of_warp ? lowest_index(value, tile, first, stride) : kNowhere};
    } else {
      if (rank < so_far || (rank == so_far && state.index != kNowhere)) return;
      state = {rank, lowest_index(value, tile, first, stride)};
    }
  }

  template <class Out>
  static __device__ void write(State state, Index, Out* out) {
    const Index index = state.index;
    *out = index == kNowhere ? static_cast<Out>(-1) : static_cast<Out>(index);
  }

 private:
  static __device__ Rank rank_of(Acc value) {
    if constexpr (kLargest) return ascending_rank(value);
    else if constexpr (kIsFloating<Acc>) return ascending_rank(-value);
    else return ~ascending_rank(value);
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ Index lowest_index(Acc value, const ElementPack (&tile)[kPacks], Index first, Index stride) {
    Index index = kNowhere;
#pragma unroll
    for (unsigned u = kPacks; u-- > 0;)
#pragma unroll
      for (unsigned e = ElementPack::kElements; e-- > 0;) {
        const Acc other = convert<Acc>(tile[u][e]);
        if (other == value || (is_nan(other) && is_nan(value))) index = first + u * stride + e;
      }
    return index;
  }

  template <class ElementPack, unsigned kPacks>
  static __device__ Acc first_value(const ElementPack (&tile)[kPacks]) {
    if constexpr (kInBytes<In, ElementPack>) {
      return convert<Acc>(extreme_of_bytes<kLargest, In>(tile));
    } else {
      return combine_tree<monoid::Extreme<kLargest, kIgnoreNan>, kPacks * ElementPack::kElements>(
          tile_values<Acc>(tile).values);
    }
  }
};

template <class In, class Acc, class Index, bool kIgnoreNan>
using ArgMax = ArgReduce<true, In, Acc, Index, kIgnoreNan>;
template <class In, class Acc, class Index, bool kIgnoreNan>
using ArgMin = ArgReduce<false, In, Acc, Index, kIgnoreNan>;

}  // namespace hone
