// Rows of any length for canonical_softmax.cuh, which are read twice: for the heaviest element and the sum of weights
// that are relative to 1, and for the results. If the heaviest element is so large or small that weights are relative
// to another power of two, they are read once more for the sum.
//
// A warp takes runs of 2^run_levels batches of kUnroll chunks; what the warps of a block take together is a span, and
// arguments.chunks is the number of spans of a row.
//
//   CanonicalSoftmaxRows    a block for each row
//   CanonicalSoftmaxSpans   a block for each span, in two launches: the first publishes a heaviest element and a sum of
//                           each span in the workspace, from which each block of the second makes those of the row.
//                           Blocks of the second sum spans again where weights are relative to another power of two
//
// Constraints: those of canonical_softmax.cuh but for the length; kUnroll · 16 / sizeof(In) ≤ 32; a row has at most
// Block::kRounds spans, or Block::kMostPartials if each has a block. rows · chunks fits 32 bits then. The workspace has
// room for two partials of each span, and for two counters of each row.
#pragma once

#include "canonical_block.cuh"
#include "canonical_softmax.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads, unsigned kUnroll>
struct CanonicalSoftmaxRows {
  using In = typename Types::In;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using Arguments = typename Types::Arguments;
  using Heaviest = HeaviestElement<Types>;
  using Weight = SoftmaxWeight<Types>;
  using GuessedPowers = typename Types::GuessedPowers;
  using Guess = SoftmaxWeight<Types, GuessedPowers>;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static constexpr unsigned kTileBytes = kWarps * kUnroll * kChunkBytes;

  static __device__ void run(const Arguments& all) {
    ToAll<Heaviest> combine_heaviest;
    ToAll<Weight> combine_weights;
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      const GuessedPowers guessed = guessed_of(all);
      Acc of_warp = Heaviest::absent();
      const Acc sum = of_row(combine_weights, of_warp, guessed, all, row);
      const Acc heaviest = combine_heaviest.to_all(of_warp);
      if (guessed.are_of(heaviest)) {
        write_spans(Guess(guessed, heaviest), sum, all, row, 0, all.chunks);
      } else {
        const Weight weight(heaviest, all.scale.factor);
        write_spans(weight, of_row(combine_weights, of_warp, weight.powers, all, row), all, row, 0, all.chunks);
      }
    }
  }

 protected:
  template <class Op>
  using Block = CanonicalBlock<Op, kBlockThreads>;
  template <class Op>
  using ToAll = Combine<CanonicalCombine<Op>, kBlockThreads, 1, Grid::none, true>;

  static __device__ GuessedPowers guessed_of(const Arguments& all) { return {all.guessed, all.scale.factor}; }
  static __device__ unsigned run_of(const Arguments& all) { return (kUnroll * kChunkElements<In>) << all.run_levels; }

  /// Reads the part of a span that is the warp's.
  template <class AnyPowers>
  static __device__ typename SoftmaxSum<Types>::State of_span(const AnyPowers& powers, const Arguments& all,
                                                              unsigned long long row, unsigned span) {
    const Index first = (Index(span) * kWarps + Block<Weight>::warp()) * run_of(all);
    const auto columns = static_cast<Index>(all.columns);
    const unsigned count = columns > first ? at_most(columns - first, run_of(all)) : 0;
    LongRow<Types, kUnroll> part{{count, all.scale.factor, all.input}, {}};
    part.load(softmax_input<Types>(all, row) + first, powers);
    return part.found;
  }

  /// The sum of a row; `heaviest` becomes that of the warp.
  template <class AnyPowers>
  static __device__ Acc of_row(ToAll<Weight>& combine, Acc& heaviest, const AnyPowers& powers, const Arguments& all,
                               unsigned long long row) {
    for (unsigned span = 0; span < all.chunks; ++span) {
      const auto found = of_span(powers, all, row, span);
      heaviest = Heaviest::combine(heaviest, found.heaviest);
      Block<Weight>::keep(found.sum, span);
    }
    return combine.to_all(Block<Weight>::value_of_thread(all.chunks));
  }

  /// The spans that were read last may still be in cache, so they come first.
  template <class AnyWeight>
  static __device__ void write_spans(const AnyWeight& weight, Acc sum, const Arguments& all, unsigned long long row,
                                     unsigned first, unsigned end) {
    const SoftmaxNorm<Acc> norm = weight.norm(sum);
    const unsigned long long each = static_cast<unsigned long long>(run_of(all)) * kWarps;
    while (end-- > first) {
      const unsigned long long begin = end * each, behind = begin + each < all.columns ? begin + each : all.columns;
      write_range<kBlockThreads>(softmax_input<Types>(all, row), softmax_output<Types>(all, row), begin, behind, weight,
                                 norm);
    }
  }
};

template <class Types, unsigned kBlockThreads, unsigned kUnroll>
struct CanonicalSoftmaxSpans : CanonicalSoftmaxRows<Types, kBlockThreads, kUnroll> {
  using Rows = CanonicalSoftmaxRows<Types, kBlockThreads, kUnroll>;
  using typename Rows::Acc, typename Rows::Arguments, typename Rows::Heaviest, typename Rows::Weight;
  using typename Rows::Guess, typename Rows::GuessedPowers;

  static __device__ void publish(const Arguments& all) {
    pdl_release_then_wait();
    for_rows(all, [&](unsigned row, unsigned first, unsigned end) {
      if (first == 0 && threadIdx.x < 2) counters_of(all, row)[threadIdx.x] = 0;
#pragma unroll 1
      for (unsigned span = first; span < end; ++span) {  // warps wait for each other once in kRounds spans
        const unsigned round = (span - first) % kRounds;
        const auto found = Rows::of_span(Rows::guessed_of(all), all, row, span);
        Block<Weight>::keep(found.sum, round);
        Block<Heaviest>::keep(found.heaviest, round);
        if (round + 1 < kRounds && span + 1 < end) continue;
        publish_kept<Weight>(sums_of(all, row) + span - round, round + 1);
        publish_kept<Heaviest>(heaviest_of(all, row) + span - round, round + 1);
        __syncthreads();
      }
    });
  }

  static __device__ void write(const Arguments& all) {
    ToAll<Heaviest> combine_heaviest;
    ToAll<Weight> combine_weights;
    for_rows(all, [&](unsigned row, unsigned first, unsigned end) {
      const GuessedPowers guessed = Rows::guessed_of(all);
      const Acc heaviest = of_row(combine_heaviest, heaviest_of(all, row), all.chunks);
      if (guessed.are_of(heaviest)) {
        Rows::write_spans(Guess(guessed, heaviest), of_row(combine_weights, sums_of(all, row), all.chunks), all, row,
                          first, end);
      } else {
        combine_weights = write_of_other_weights(heaviest, combine_weights, all, row, first, end);
      }
    });
  }

 private:
  template <class Op>
  using Block = typename Rows::template Block<Op>;
  template <class Op>
  using ToAll = typename Rows::template ToAll<Op>;
  static constexpr unsigned kRounds = Block<Weight>::kRounds;

  /// Calls act(row, first, end) for the spans of each row that the block has: neighbours among those of all rows.
  template <class Act>
  static __device__ void for_rows(const Arguments& all, const Act& act) {
    const unsigned long long items = all.rows * all.chunks;
    auto item = static_cast<unsigned>(items * blockIdx.x / gridDim.x);
    const auto end = static_cast<unsigned>(items * (blockIdx.x + 1) / gridDim.x);
    while (item < end) {
      const unsigned row = item / all.chunks, first = item - row * all.chunks;
      const unsigned count = end - item < all.chunks - first ? end - item : all.chunks - first;
      act(row, first, first + count);
      item += count;
    }
  }

  static __device__ Acc* heaviest_of(const Arguments& all, unsigned row) {
    return partials_in<Acc>(all.workspace) + row * all.chunks;
  }
  static __device__ Acc* sums_of(const Arguments& all, unsigned row) {
    return heaviest_of(all, static_cast<unsigned>(all.rows) + row);
  }

  /// Two numbers for each row, behind the partials: of spans that blocks claimed to sum them again, and that they did.
  static __device__ unsigned* counters_of(const Arguments& all, unsigned row) {
    return reinterpret_cast<unsigned*>(heaviest_of(all, 2 * static_cast<unsigned>(all.rows))) + 2 * row;
  }

  /// Publishes the trees of what the warps kept of so many spans.
  template <class Op>
  static __device__ void publish_kept(Acc* partials, unsigned spans) {
    constexpr unsigned kWarps = Block<Op>::kWarps;
    const Acc state = Block<Op>::tree_of_warps(Block<Op>::value_of_thread(spans));
    if (threadIdx.x % kWarps == 0 && threadIdx.x < spans * kWarps) partials[threadIdx.x / kWarps] = state;
  }

  /// Writes spans of a row whose weights are relative to another power of two than was guessed, after it has summed
  /// them again. As a part of write() it would cost registers there.
  static __device__ __noinline__ ToAll<Weight> write_of_other_weights(Acc heaviest, ToAll<Weight> combine,
                                                                      const Arguments& all, unsigned row,
                                                                      unsigned first, unsigned end) {
    const Weight weight(heaviest, all.scale.factor);
    if (!weight.is_nan) sum_again(weight, all, row);
    Rows::write_spans(weight, of_row(combine, sums_of(all, row), all.chunks), all, row, first, end);
    return combine;
  }

  /// Replaces the sums of a row's spans by those of other weights. Blocks claim spans, and wait for those that others
  /// claimed, which sum them without waiting for anything.
  static __device__ void sum_again(const Weight& weight, const Arguments& all, unsigned row) {
    __shared__ unsigned claimed;
    unsigned* const counters = counters_of(all, row);
#pragma unroll 1
    for (;;) {
      if (threadIdx.x == 0) claimed = atomicAdd(counters, 1u);
      __syncthreads();
      const unsigned span = claimed;
      if (span >= all.chunks) break;
      Block<Weight>::keep(Rows::of_span(weight.powers, all, row, span).sum, 0);
      publish_kept<Weight>(sums_of(all, row) + span, 1);
      if (threadIdx.x == 0) count_up(counters + 1);
    }
    if (threadIdx.x == 0) wait_for_count(counters + 1, all.chunks);
    __syncthreads();
  }

  /// The tree of a row's partials, in all threads.
  template <class Op>
  static __device__ Acc of_row(ToAll<Op>& combine, const Acc* partials, unsigned count) {
    return combine.to_all(Block<Op>::of_partials(partials, count));
  }
};

}  // namespace hone
