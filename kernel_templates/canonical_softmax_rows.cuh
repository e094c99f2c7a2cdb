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
#include "canonical_chunks.cuh"
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
  using Norm = typename Weight::Norm;
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static constexpr unsigned kTileBytes = kWarps * kUnroll * kChunkBytes;

  static __device__ void run(const Arguments& all) {
    ToAll<Heaviest> combine_heaviest;
    ToAll<Weight> combine_weights;
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      Acc heaviest;
      Acc sum = of_row(combine_weights, SoftmaxGuess<Types>(all.scale.factor, &heaviest), all, row);
      const Weight weight(combine_heaviest.to_all(heaviest), all.scale.factor);
      if (!weight.is_guessed()) sum = of_row(combine_weights, weight, all, row);
      const Norm norm = weight.norm(sum);
      for (unsigned span = 0; span < all.chunks; ++span) write_span(weight, norm, all, row, span);
    }
  }

 protected:
  template <class Op>
  using Block = CanonicalBlock<Op, kBlockThreads>;
  template <class Op>
  using ToAll = Combine<CanonicalCombine<Op>, kBlockThreads, 1, Grid::none, true>;

  static __device__ Index run_of(const Arguments& all) { return Index(kUnroll) << all.run_levels; }

  /// The tree of what a warp has of a span.
  template <class Op>
  static __device__ Acc of_span(const Op& op, const Arguments& all, unsigned long long row, unsigned span) {
    using Source = OneArray<In, 16 / sizeof(In)>;
    const CanonicalChunks<Op, Source, kUnroll> chunks({softmax_input<Types>(all, row)},
                                                      static_cast<Index>(all.columns), op);
    return chunks.of_run((Index(span) * kWarps + Block<Weight>::warp()) * run_of(all), run_of(all));
  }

  /// The sum of a row.
  template <class Op>
  static __device__ Acc of_row(ToAll<Weight>& combine, const Op& op, const Arguments& all, unsigned long long row) {
    for (unsigned span = 0; span < all.chunks; ++span) Block<Weight>::keep(of_span(op, all, row, span), span);
    return combine.to_all(Block<Weight>::value_of_thread(all.chunks));
  }

  static __device__ void write_span(const Weight& weight, const Norm& norm, const Arguments& all, unsigned long long row,
                                    unsigned span) {
    using InPack = typename Types::InPack;
    constexpr unsigned kPack = Types::kPack, kAtOnce = kPack == 1 ? 8 : 4, kStep = kBlockThreads * kPack;
    const unsigned long long each = static_cast<unsigned long long>(run_of(all)) * kWarps * kChunkElements<In>;
    const unsigned long long begin = span * each, end = begin + each < all.columns ? begin + each : all.columns;
    const In* const in = softmax_input<Types>(all, row);
    typename Types::Out* const out = softmax_output<Types>(all, row);
    const auto load = [&](unsigned long long i) { return *reinterpret_cast<const InPack*>(in + i); };
    const auto store = [&](unsigned long long i, const InPack& pack) {
      *reinterpret_cast<typename Types::OutPack*>(out + i) = weight.results(pack, norm);
    };
    unsigned long long i = begin + threadIdx.x * kPack;
    for (; i + (kAtOnce - 1) * kStep + kPack <= end; i += kAtOnce * kStep) {
      // All loads come first: the compiler cannot know that stores do not change what is loaded.
      const Array<InPack, kAtOnce> packs([&](unsigned u) { return load(i + u * kStep); });
#pragma unroll
      for (unsigned u = 0; u < kAtOnce; ++u) store(i + u * kStep, packs.values[u]);
    }
    for (; i + kPack <= end; i += kStep) store(i, load(i));
    const unsigned long long single = end / kPack * kPack + threadIdx.x;
    if (kPack > 1 && single < end) out[single] = weight.result(in[single], norm);
  }
};

template <class Types, unsigned kBlockThreads, unsigned kUnroll>
struct CanonicalSoftmaxSpans : CanonicalSoftmaxRows<Types, kBlockThreads, kUnroll> {
  using Rows = CanonicalSoftmaxRows<Types, kBlockThreads, kUnroll>;
  using typename Rows::Acc, typename Rows::Arguments, typename Rows::Heaviest, typename Rows::Weight;
  using typename Rows::Norm;

  static __device__ void publish(const Arguments& all) {
    pdl_release_then_wait();
    for_rows(all, [&](unsigned row, unsigned first, unsigned end) {
      for (unsigned span = first; span < end; ++span) {
        Acc heaviest;
        const Acc sum = Rows::of_span(SoftmaxGuess<Types>(all.scale.factor, &heaviest), all, row, span);
        publish_warps<Weight>(sum, sums_of(all, row) + span);
        publish_warps<Heaviest>(CanonicalCombine<Heaviest>::template in_all_lanes<kWarpThreads>(heaviest),
                                heaviest_of(all, row) + span);
      }
    });
  }

  static __device__ void correct(const Arguments& all) {
    ToAll<Heaviest> combine;
    for_rows(all, [&](unsigned row, unsigned first, unsigned end) {
      const Weight weight(of_row(combine, heaviest_of(all, row), all.chunks), all.scale.factor);
      if (weight.is_guessed()) return;
      for (unsigned span = first; span < end; ++span)
        publish_warps<Weight>(Rows::of_span(weight, all, row, span), sums_of(all, row) + span);
    });
  }

  /// The spans that were read last may still be in cache, so they come first.
  static __device__ void write(const Arguments& all) {
    ToAll<Heaviest> combine_heaviest;
    ToAll<Weight> combine_weights;
    for_rows(all, [&](unsigned row, unsigned first, unsigned end) {
      const Weight weight(of_row(combine_heaviest, heaviest_of(all, row), all.chunks), all.scale.factor);
      const Norm norm = weight.norm(of_row(combine_weights, sums_of(all, row), all.chunks));
      for (unsigned span = end; span-- > first;) Rows::write_span(weight, norm, all, row, span);
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
