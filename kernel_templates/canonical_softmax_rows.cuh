// Rows of any length for canonical_softmax.cuh, by a block each, which reads them three times: for the heaviest element,
// for the sum of the weights, and for the results.
//
// A warp takes runs of 2^run_levels batches of kUnroll chunks; what the warps of a block take together is a span, and
// arguments.chunks is the number of spans of a row.
//
// Constraints: those of canonical_softmax.cuh but for the length; kUnroll · 16 / sizeof(In) ≤ 32; a row has at most
// Block::kRounds spans.
#pragma once

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
  static constexpr unsigned kWarps = kBlockThreads / kWarpThreads;
  static constexpr unsigned kTileBytes = kWarps * kUnroll * kChunkBytes;

  static __device__ void run(const Arguments& all) {
    ToAll<Heaviest> combine_heaviest;
    ToAll<Weight> combine_weights;
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      const Weight weight(of_row(combine_heaviest, Heaviest{all.scale.factor}, all, row), all.scale.factor);
      const Acc divisor = weight.divisor(of_row(combine_weights, weight, all, row));
      for (unsigned span = 0; span < all.chunks; ++span) write_span(weight, divisor, all, row, span);
    }
  }

 private:
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
    return chunks.of_run((Index(span) * kWarps + Block<Op>::warp()) * run_of(all), run_of(all));
  }

  template <class Op>
  static __device__ Acc of_row(ToAll<Op>& combine, const Op& op, const Arguments& all, unsigned long long row) {
    for (unsigned span = 0; span < all.chunks; ++span) Block<Op>::keep(of_span(op, all, row, span), span);
    return combine.to_all(Block<Op>::value_of_thread(all.chunks));
  }

  static __device__ void write_span(const Weight& weight, Acc divisor, const Arguments& all, unsigned long long row,
                                    unsigned span) {
    using InPack = typename Types::InPack;
    using OutPack = typename Types::OutPack;
    constexpr unsigned kPack = Types::kPack;
    const unsigned long long each = static_cast<unsigned long long>(run_of(all)) * kWarps * kChunkElements<In>;
    const unsigned long long begin = span * each, end = begin + each < all.columns ? begin + each : all.columns;
    const In* const in = softmax_input<Types>(all, row);
    typename Types::Out* const out = softmax_output<Types>(all, row);
#pragma unroll 4
    for (unsigned long long i = begin + threadIdx.x * kPack; i + kPack <= end; i += kBlockThreads * kPack) {
      const InPack pack = *reinterpret_cast<const InPack*>(in + i);
      *reinterpret_cast<OutPack*>(out + i) = OutPack::of([&](unsigned e) { return weight.result(pack[e], divisor); });
    }
    const unsigned long long single = end / kPack * kPack + threadIdx.x;
    if (kPack > 1 && single < end) out[single] = weight.result(in[single], divisor);
  }
};

}  // namespace hone
