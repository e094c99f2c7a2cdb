// Rows of any length for canonical_softmax.cuh, which are read twice: for the heaviest element and the sum of weights
// that are relative to 1, and for the results. If the heaviest element is so large or small that weights are relative
// to another power of two, they are read once more for the sum.
//
// A warp takes runs of 2^run_levels batches of kUnroll chunks; what the warps of a block take together is a span, and
// arguments.chunks is the number of spans of a row.
//
//   CanonicalSoftmaxRows    a block for each row
//   CanonicalSoftmaxSpans   a block for each span, in three launches: the first publishes a heaviest element and a sum
//                           of each span in the workspace, the second corrects sums, mostly none, and the third makes
//                           the tree of the row's spans in each block
//
// Constraints: those of canonical_softmax.cuh but for the length; kUnroll · 16 / sizeof(In) ≤ 32; a row has at most
// Block::kRounds spans, or Block::kMostPartials if each has a block. rows · chunks fits 32 bits then.
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
  using Guess = SoftmaxWeight<Types, GuessedPowers<Acc>>;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static constexpr unsigned kTileBytes = kWarps * kUnroll * kChunkBytes;

  static __device__ void run(const Arguments& all) {
    ToAll<Heaviest> combine_heaviest;
    ToAll<Weight> combine_weights;
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      const GuessedPowers<Acc> guessed = guessed_of(all);
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

  static __device__ GuessedPowers<Acc> guessed_of(const Arguments& all) { return {all.guessed, all.scale.factor}; }
  static __device__ unsigned run_of(const Arguments& all) { return (kUnroll * kChunkElements<In>) << all.run_levels; }

  /// Reads the part of a span that is the warp's.
  template <class AnyPowers>
  static __device__ typename SoftmaxSum<Types>::State of_span(const AnyPowers& powers, const Arguments& all,
                                                              unsigned long long row, unsigned span) {
    const Index first = (Index(span) * kWarps + Block<Weight>::warp()) * run_of(all);
    const auto columns = static_cast<Index>(all.columns);
    LongRow<Types, kUnroll> part{{columns > first ? at_most(columns - first, run_of(all)) : 0, all.scale.factor}, {}};
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
  using typename Rows::Guess;

  static __device__ void publish(const Arguments& all) {
    pdl_release_then_wait();
    for_rows(all, [&](unsigned row, unsigned first, unsigned end) {
      for (unsigned span = first; span < end; ++span) {
        const auto found = Rows::of_span(Rows::guessed_of(all), all, row, span);
        publish_warps<Weight>(found.sum, sums_of(all, row) + span);
        publish_warps<Heaviest>(found.heaviest, heaviest_of(all, row) + span);
      }
    });
  }

  static __device__ void correct(const Arguments& all) {
    ToAll<Heaviest> combine;
    for_rows(all, [&](unsigned row, unsigned first, unsigned end) {
      const Weight weight(of_row(combine, heaviest_of(all, row), all.chunks), all.scale.factor);
      if (weight.is_guessed()) return;
      for (unsigned span = first; span < end; ++span)
        publish_warps<Weight>(Rows::of_span(weight.powers, all, row, span).sum, sums_of(all, row) + span);
    });
  }

  static __device__ void write(const Arguments& all) {
    ToAll<Heaviest> combine_heaviest;
    ToAll<Weight> combine_weights;
    for_rows(all, [&](unsigned row, unsigned first, unsigned end) {
      const GuessedPowers<Acc> guessed = Rows::guessed_of(all);
      const Acc heaviest = of_row(combine_heaviest, heaviest_of(all, row), all.chunks);
      const Acc sum = of_row(combine_weights, sums_of(all, row), all.chunks);
      if (guessed.are_of(heaviest)) Rows::write_spans(Guess(guessed, heaviest), sum, all, row, first, end);
      else Rows::write_spans(Weight(heaviest, all.scale.factor), sum, all, row, first, end);
    });
  }

 private:
  template <class Op>
  using Block = typename Rows::template Block<Op>;
  template <class Op>
  using ToAll = typename Rows::template ToAll<Op>;

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

  /// Publishes the tree of what the warps have.
  template <class Op>
  static __device__ void publish_warps(Acc of_warp, Acc* partial) {
    Block<Op>::keep(of_warp, 0);
    const Acc state = Block<Op>::tree_of_warps(Block<Op>::value_of_thread(1));
    if (threadIdx.x == 0) *partial = state;
    __syncthreads();
  }

  /// The tree of a row's partials, in all threads.
  template <class Op>
  static __device__ Acc of_row(ToAll<Op>& combine, const Acc* partials, unsigned count) {
    return combine.to_all(Block<Op>::of_partials(partials, count));
  }
};

}  // namespace hone
