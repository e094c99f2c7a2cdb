// Long rows for canonical_softmax.cuh that a grid holds in shared memory: the Kernel of row_held.cuh.
//
// Chunks are those of row_held.cuh, and made of whole tree chunks (canonical_held_order.cuh). A warp sums one at a time.
// Rows whose weights are relative to another power of two than was guessed are summed again.
//
// Constraints: those of canonical_softmax.cuh but for the length; packs of 16 bytes; a slot has whole tree chunks.
#pragma once

#include "canonical_held_order.cuh"
#include "canonical_held_write.cuh"
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
  using Row = CanonicalHeldRow<Types, kBlockThreads>;
  using State = typename SoftmaxSum<Types>::State;
  using Op = CanonicalCombine<SoftmaxSum<Types>>;
  using Weight = SoftmaxWeight<Types>;
  using Guess = SoftmaxWeight<Types, typename Types::GuessedPowers>;
  using Rows = CanonicalHeldRows<Types, kBlockThreads>;
  using Order = CanonicalHeldOrder<Types, Rows>;
  using Write = CanonicalHeldWrite<Types, kBlockThreads>;

  /// The largest and the smallest of a thread's elements, negated if the factor is negative; where the sums of tree
  /// chunks go; and the warp's next tree chunk and the end of those that are whole, counted from the part's first one.
  /// A block's warps are dealt the tree chunks of all of its rows one after the other.
  struct Sums {
    ExtremeElement<true, Acc, In> largest;
    ExtremeElement<false, Acc, In> smallest;  ///< if kFindsLow
    Acc* of_chunks;
    unsigned next, end;
  };

  /// Results of a row with the Weight of Guess, or another.
  template <class AnyWeight>
  struct Results {
    AnyWeight weight;
    SoftmaxNorm<Acc> norm;
    bool has_low;  ///< some elements that the block writes are less than guessed.lowest, or may be

    __device__ typename Types::Out of(In x) const {
      Pack<In, 1> element[1] = {Pack<In, 1>::filled(x)};
      weight.powers.turn(element);
      return weight.result(element[0][0], norm);
    }
  };

  static __device__ Op op(const Rows&) { return {}; }

  static __device__ Sums sums_of_part(const Row& part, unsigned r, const Rows& all) {
    return sums_of_torn(part, r, all, all.guessed());
  }
  static __device__ Sums sums_of_part(const Row& part, unsigned r, const Rows& all, const State& known) {
    return sums_of_torn(part, r, all, Weight(known.heaviest, all.factor()).powers);
  }

  static __device__ Sums sums_of_chunks(const Row& part, Index first, const Rows& all) {
    return {{}, {}, all.chunk_sums(0), static_cast<unsigned>(first / kTreeChunkPacks) + part.thread / kWarpThreads,
            all.of_part(part.whole_tree_chunks())};
  }

  template <unsigned>
  static __device__ void add_held(Sums& sums, const auto& chunk, const Rows& all) {
    add_tree_chunks(sums, chunk, all, all.guessed());
  }
  template <unsigned>
  static __device__ void add_held(Sums& sums, const auto& chunk, const Rows& all, const State& known) {
    add_tree_chunks(sums, chunk, all, Weight(known.heaviest, all.factor()).powers);
  }

  static __device__ typename Order::Share state_of(const Sums& sums, const Rows& all) {
    return {sums.largest.value(), has_low(sums, all.guessed()) ? 1u : 0u};
  }

  /// True for rows without numbers as results, too.
  static __device__ bool sums_again(const State& found, const Rows& all) {
    return !all.guessed().are_of(found.heaviest);
  }

  static __device__ Results<Guess> results_of(const State& of_row, const typename Order::Share& share,
                                              const Rows& all) {
    return results_with(Guess(all.guessed(), of_row.heaviest), of_row, share.has_low != 0);
  }
  static __device__ Results<Weight> results_again_of(const State& of_row, const Rows& all) {
    return results_with(Weight(of_row.heaviest, all.factor()), of_row, true);
  }

  template <unsigned kTile>
  static __device__ void write_held(const auto& chunk, const Results<Guess>& results) {
    if constexpr (kFindsLow && !Types::kLog) {
      if (!results.has_low) return Write::template packs<kTile>(chunk, results.weight.of_none_low(), results.norm);
    }
    Write::template packs<kTile>(chunk, results.weight, results.norm);
  }
  template <unsigned kTile>
  static __device__ void write_held(const auto& chunk, const Results<Weight>& results) {
    Write::template packs<kTile>(chunk, results.weight, results.norm);
  }

 private:
  /// The smallest of 16-bit floats, two of which are compared at once, costs less than what weights of low ones do.
  static constexpr bool kFindsLow = kIsFloat16<In>;

  /// Code that sums rows again would spill what it keeps of the lane.
  struct TornTypes : Types {
    static constexpr bool kForgetsLane = true;
  };

  /// Tree chunks at the end of a row, at most, of which elements are in a pack that is not whole.
  static constexpr unsigned kMostTorn = Types::kIsAligned ? 1 : 2;

  template <class AnyWeight>
  static __device__ Results<AnyWeight> results_with(const AnyWeight& weight, const State& of_row, bool has_low) {
    return {weight, weight.norm(of_row.sum), has_low};
  }

  static __device__ bool has_low(const Sums& sums, const typename Types::GuessedPowers& powers) {
    return !kFindsLow || sums.smallest.value() < powers.lowest;
  }

  /// Adds the elements of a tree chunk, which are turned as the powers want them, to the largest one.
  template <class AnyPowers, unsigned kPacks>
  static __device__ void look_at(Sums& sums, const InPack (&packs)[kPacks], const Rows& all, const AnyPowers&) {
    if constexpr (AnyPowers::kTurnsElements) {
      sums.largest.add(packs);
    } else {
      InPack turned[kPacks];
      unrolled<kPacks>([&](unsigned u) { turned[u] = packs[u]; });
      all.guessed().turn(turned);
      sums.largest.add(turned);
    }
  }

  /// Adds packs that are written with a tree chunk to the smallest element.
  template <class AnyPowers, unsigned kPacks>
  static __device__ void look_for_low(Sums& sums, const InPack (&packs)[kPacks], const AnyPowers&) {
    if constexpr (kFindsLow && AnyPowers::kTurnsElements) sums.smallest.add(packs);
  }

  /// Tree chunks that have elements in no whole pack come from memory, since those are not held: the first one of a row
  /// that begins within a pack, and up to two at its end. Packs that are written with the latter have elements of the
  /// chunk before, which are not looked at, and so count as low.
  template <class AnyPowers>
  static __device__ Sums sums_of_torn(const Row& part, unsigned r, const Rows& all, const AnyPowers& powers) {
    const unsigned dealt = r * all.part_tree_chunks() % kWarps, warp = part.thread / kWarpThreads;
    unsigned at = all.of_part(part.whole_tree_chunks());
    Sums sums{{}, {}, all.chunk_sums(r), warp < dealt ? warp + kWarps - dealt : warp - dealt, at};
    if (part.head > 0 && blockIdx.x == 0 && at > 0 && sums.next == 0) {
      add_from_memory(sums, part, 0, all, powers);
      sums.next = kWarps;
    }
#pragma unroll 1
    for (unsigned i = 0; i < kMostTorn && at < all.tree_chunks(); ++i, ++at)
      if ((dealt + at) % kWarps == warp) {
        add_from_memory(sums, part, at, all, powers);
        const InPack low[1] = {InPack::filled(convert<In>(lowest<Acc>()))};
        if (part.packs_before() > 0) look_for_low(sums, low, powers);
      }
    return sums;
  }

  template <class AnyPowers>
  static __device__ void add_from_memory(Sums& sums, const Row& part, unsigned at, const Rows& all,
                                         const AnyPowers& powers) {
    const Index first = (all.first_tree_chunk() + at) * kTreeChunk;
    const unsigned count = at_most(part.columns - first, kTreeChunk);
    HeldChunks<TornTypes, kWarpThreads, kTreeChunkPacks / kWarpThreads, 1, false> held;
    held.load(part.in + first, count, all.factor(), all.arguments.input, powers);
    look_at(sums, held.packs, all, powers);
    look_for_low(sums, held.packs, powers);
    Acc values[kPack];
    held.weigh(values, count, powers);
    keep(sums, part, at, values);
  }

  /// Sums the whole tree chunks of a chunk that are the warp's. Chunks of a row come in order.
  template <class AnyPowers>
  static __device__ void add_tree_chunks(Sums& sums, const auto& chunk, const Rows& all, const AnyPowers& powers) {
    const unsigned of_slot = all.arguments.slot_packs / kTreeChunkPacks, begin = chunk.number * of_slot;
    const unsigned end = smaller<true>(begin + of_slot, sums.end), lane = chunk.thread % kWarpThreads;
    [[maybe_unused]] const PackMask<InPack> of_next =
        PackMask<InPack>::of_first(lane == 0 ? chunk.elements_before() * sizeof(In) : 0);
    unsigned first = (sums.next - begin) * kTreeChunkPacks;  // pack of the chunk
#pragma unroll 1
    for (; sums.next < end; sums.next += kWarps, first += kWarps * kTreeChunkPacks) {
      const InPack* const packs = chunk.packs + first + lane;
      HeldChunks<Types, kWarpThreads, kTreeChunkPacks / kWarpThreads, 1, false, true> held;
      unrolled<kTreeChunkPacks / kWarpThreads>(
          [&](unsigned u) { held.packs[u] = packs[u * kWarpThreads]; });
      powers.turn(held.packs);
      look_for_low(sums, held.packs, powers);
      if constexpr (!Types::kIsAligned) {
        InPack next[1] = {chunk.packs[first + (chunk.packs_before() > 0 ? kTreeChunkPacks : 0)]};
        powers.turn(next);
        look_for_low(sums, next, powers);
        held.packs[0] = of_next.joined(next[0], held.packs[0]);
      }
      look_at(sums, held.packs, all, powers);
      Acc values[kPack];
      weigh(values, held, sums, powers);
      keep(sums, chunk, sums.next, values);
    }
  }

  /// The weights of a whole tree chunk. They are not compared with the lowest one where the warp has found no element
  /// that is low so far.
  template <class AnyPowers>
  static __device__ void weigh(Acc (&values)[kPack], auto& held, const Sums& sums, const AnyPowers& powers) {
    if constexpr (kFindsLow && AnyPowers::kTurnsElements) {
      if (!__any_sync(kFullMask, has_low(sums, powers))) return held.weigh(values, kTreeChunk, powers.of_none_low());
    }
    held.weigh(values, kTreeChunk, powers);
  }

  static __device__ void keep(const Sums& sums, const Row& row, unsigned at, Acc (&values)[kPack]) {
    const Acc sum = fold_lanes<CanonicalSum<Acc>, kPack>(values);
    if (row.thread % kWarpThreads == 0) sums.of_chunks[at] = sum;
  }
};

}  // namespace hone
