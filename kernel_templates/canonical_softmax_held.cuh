// Long rows for canonical_softmax.cuh that a grid holds in shared memory: the Kernel of row_held.cuh.
//
// Chunks are those of row_held.cuh, and made of whole tree chunks (canonical_held_order.cuh). A warp sums one at a time.
// Rows whose weights are relative to another power of two than was guessed are summed again.
//
// Constraints: those of canonical_softmax.cuh but for the length; packs of 16 bytes.
#pragma once

#include "canonical_held_order.cuh"
#include "canonical_softmax_chunk.cuh"
#include "row_held.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads_>
struct CanonicalSoftmaxHeld {
  static constexpr unsigned kBlockThreads = kBlockThreads_, kPack = Types::kPack;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads, kTreeChunk = kChunkElements<typename Types::In>;
  static constexpr unsigned kTreeChunkPacks = kTreeChunk / kPack;
  using In = typename Types::In;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using Arguments = typename Types::Arguments;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Row = CanonicalHeldRow<Types, kBlockThreads>;
  using State = typename SoftmaxSum<Types>::State;
  using Op = CanonicalCombine<SoftmaxSum<Types>>;
  using Weight = SoftmaxWeight<Types>;
  using Guess = SoftmaxWeight<Types, typename Types::GuessedPowers>;
  using Heaviest = HeaviestElement<Types>;
  using Rows = CanonicalHeldRows<Types, kBlockThreads>;
  using Order = CanonicalHeldOrder<Types, Rows>;

  /// The heaviest of a thread's elements; where the sums of tree chunks go, and which of them are the warp's: those of
  /// a block's rows are dealt to its warps one after the other.
  struct Sums {
    Acc heaviest;
    Acc* of_chunks;
    unsigned before;  ///< tree chunks of earlier rows

    /// The first tree chunk from `begin` on that is the warp's.
    __device__ unsigned first(unsigned begin, unsigned warp) const {
      const unsigned other = (before + begin) % kWarps;
      return begin + (warp < other ? warp + kWarps - other : warp - other);
    }
  };

  /// Results of a row with the Weight of Guess, or another.
  template <class AnyWeight>
  struct Results {
    AnyWeight weight;
    SoftmaxNorm<Acc> norm;

    __device__ typename Types::Out of(In x) const {
      Pack<In, 1> element[1] = {Pack<In, 1>::filled(x)};
      weight.powers.turn(element);
      return weight.result(element[0][0], norm);
    }
  };

  static __device__ Op op(const Rows&) { return {}; }

  static __device__ Sums sums_of_part(const Row& part, unsigned r, const Rows& all) {
    return sums_of_last(part, r, all, all.guessed());
  }
  static __device__ Sums sums_of_part(const Row& part, unsigned r, const Rows& all, const State& known) {
    return sums_of_last(part, r, all, Weight(known.heaviest, all.factor()).powers);
  }

  template <unsigned>
  static __device__ void add_held(Sums& sums, const auto& chunk, const Rows& all) {
    add_tree_chunks(sums, chunk, all, all.guessed());
  }
  template <unsigned>
  static __device__ void add_held(Sums& sums, const auto& chunk, const Rows& all, const State& known) {
    add_tree_chunks(sums, chunk, all, Weight(known.heaviest, all.factor()).powers);
  }

  static __device__ Acc state_of(const Sums& sums, const Rows&) { return sums.heaviest; }

  /// True for rows without numbers as results, too.
  static __device__ bool sums_again(const State& found, const Rows& all) {
    return !all.guessed().are_of(found.heaviest);
  }

  static __device__ Results<Guess> results_of(const State& of_row, const Rows& all) {
    return results_with(Guess(all.guessed(), of_row.heaviest), of_row);
  }
  static __device__ Results<Weight> results_again_of(const State& of_row, const Rows& all) {
    return results_with(Weight(of_row.heaviest, all.factor()), of_row);
  }

  template <unsigned kTile>
  static __device__ void write_held(const auto& chunk, const auto& results) {
    Index p = chunk.first;
    for (; p + (kTile - 1) * kBlockThreads < chunk.end; p += kTile * kBlockThreads)
      write_tile<kTile>(chunk, p, results);
    for (; p < chunk.end; p += kBlockThreads) write_tile<1>(chunk, p, results);
  }

 private:
  template <class AnyWeight>
  static __device__ Results<AnyWeight> results_with(const AnyWeight& weight, const State& of_row) {
    return {weight, weight.norm(of_row.sum)};
  }

  /// The heaviest element of packs that are turned as the powers want them.
  template <class AnyPowers, unsigned kPacks>
  static __device__ Acc heaviest_of(const InPack (&packs)[kPacks], const Rows& all, const AnyPowers&) {
    if constexpr (AnyPowers::kTurnsElements) return largest_of<Acc>(packs);
    InPack turned[kPacks];
    unrolled<kPacks>([&](unsigned u) { turned[u] = packs[u]; });
    all.guessed().turn(turned);
    return largest_of<Acc>(turned);
  }

  /// The last tree chunk of a row, if that is not whole, comes from memory: elements behind the last pack are not held.
  template <class AnyPowers>
  static __device__ Sums sums_of_last(const Row& part, unsigned r, const Rows& all, const AnyPowers& powers) {
    Sums sums{Heaviest::absent(), all.chunk_sums(r), r * all.part_tree_chunks()};
    const unsigned at = all.whole_tree_chunks(), left = static_cast<unsigned>(part.columns % kTreeChunk);
    if (at == all.tree_chunks() || sums.first(at, part.thread / kWarpThreads) != at) return sums;
    HeldChunks<Types, kWarpThreads, kTreeChunkPacks / kWarpThreads, 1, false> held;
    held.load(part.in + (part.columns - left), left, all.factor(), {}, powers);
    sums.heaviest = heaviest_of(held.packs, all, powers);
    Acc values[kPack];
    held.weigh(values, left, powers);
    keep(sums, part, at, values);
    return sums;
  }

  /// Sums the whole tree chunks of a chunk that are the warp's.
  template <class AnyPowers>
  static __device__ void add_tree_chunks(Sums& sums, const auto& chunk, const Rows& all, const AnyPowers& powers) {
    const Index part = static_cast<Index>(blockIdx.x) * all.part_tree_chunks();
    const auto begin = static_cast<unsigned>((chunk.first - chunk.thread) / kTreeChunkPacks - part);
    const unsigned behind = begin + all.arguments.slot_packs / kTreeChunkPacks, whole = all.whole_tree_chunks();
    const unsigned end = behind < whole ? behind : whole;
#pragma unroll 1
    for (unsigned at = sums.first(begin, chunk.thread / kWarpThreads); at < end; at += kWarps) {
      Acc values[kPack];
      fold_packs<0, 1>(values, sums.heaviest, chunk, (part + at) * kTreeChunkPacks + chunk.thread % kWarpThreads,
                       all, powers);
      keep(sums, chunk, at, values);
    }
  }

  static __device__ void keep(const Sums& sums, const Row& row, unsigned at, Acc (&values)[kPack]) {
    const Acc sum = fold_lanes<CanonicalSum<Acc>, kPack>(values);
    if (row.thread % kWarpThreads == 0) sums.of_chunks[at] = sum;
  }

  /// Folds the weights of packs p + 32 u of a whole tree chunk, u = kFirst, kFirst + kStep, …, in halves, each pack when
  /// it is loaded, so that few registers hold elements.
  template <unsigned kFirst, unsigned kStep, class AnyPowers>
  static __device__ void fold_packs(Acc (&values)[kPack], Acc& heaviest, const auto& chunk, Index p,
                                    const Rows& all, const AnyPowers& powers) {
    if constexpr (kStep == kTreeChunkPacks / kWarpThreads) {
      InPack pack[1] = {chunk.load(p + kFirst * kWarpThreads)};
      powers.turn(pack);
      heaviest = larger<false>(heaviest, heaviest_of(pack, all, powers));
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) values[e] = powers(convert<Acc>(pack[0][e]));
    } else {
      fold_packs<kFirst, 2 * kStep>(values, heaviest, chunk, p, all, powers);
      Acc others[kPack];
      fold_packs<kFirst + kStep, 2 * kStep>(others, heaviest, chunk, p, all, powers);
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) values[e] = rounded_sum(values[e], others[e]);
    }
  }

  template <unsigned kPacks>
  static __device__ void write_tile(const auto& chunk, Index p, const auto& results) {
    InPack tile[kPacks];
    unrolled<kPacks>([&](unsigned u) { tile[u] = chunk.load(p + u * kBlockThreads); });
    results.weight.powers.turn(tile);
    unrolled<kPacks>([&](unsigned u) {
      store_streaming(reinterpret_cast<OutPack*>(chunk.out) + (p + u * kBlockThreads),
                      results.weight.results(tile[u], results.norm));
    });
  }
};

}  // namespace hone
