// Softmax, or its logarithm, over the middle extent of outer × reduced × inner: a column gets the bits that a row of its
// elements gets by canonical_softmax.cuh.
//
// A block has a tile of kLanes packs of neighbouring columns, whose chunks are shared by its threads (ColumnChunk). It
// visits them three times: for the heaviest elements, for the sums of weights, and for the results. A single chunk that
// is a single batch stays in registers. With several spans of chunks for each tile there are three launches: the first
// two publish a heaviest element and a sum for each span of each column, and blocks make the trees of the spans.
//
// May be in place. Constraints: kBlockThreads and kLanes are powers of two; packs of columns are aligned in every row,
// and `inner` is a multiple of them; a chunk is no shorter than the rows that a block loads at once; a span has at most
// 2^kLevels chunks, and a tile at most kThreadSpans spans for each thread of a column.
#pragma once

#include "canonical_softmax_work.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll, unsigned kBatchLevels,
          unsigned kLevels>
struct CanonicalSoftmaxColumns {
  using Work = SoftmaxColumnWork<Types, kBlockThreads, kLanes, kUnroll, kBatchLevels, kLevels>;
  using Acc = typename Types::Acc;
  using Weight = typename Work::Weight;
  using Arguments = typename Work::Arguments;
  static constexpr unsigned kColumns = Work::kTileColumns, kThreadSpans = Work::kThreadSpans;

  static __device__ void whole(const Arguments& all) {
    Work::template for_items<false>(all, [&](Work& work) {
      work.find_heaviest(keep_heaviest);
      const auto weights = work.weights();
      work.find_sums(weights, keep_divisor);
      work.write(weights);
    });
  }

  static __device__ void publish_heaviest(const Arguments& all) {
    Work::template for_items<false>(all, [&](Work& work) {
      work.find_heaviest([&](unsigned output, Acc heaviest) { *work.partial(0, work.part, output) = heaviest; });
    });
  }

  /// The spans that were read last may still be in cache, so they come first; and so in the third launch.
  static __device__ void publish_sums(const Arguments& all) {
    Work::template for_items<true>(all, [&](Work& work) {
      work.template combine_spans<CanonicalMax<Acc>>(0, lowest<Acc>(), keep_heaviest);
      work.find_sums(work.weights(), [&](unsigned output, Acc sum) { *work.partial(1, work.part, output) = sum; });
    });
  }

  static __device__ void write_spans(const Arguments& all) {
    Work::template for_items<false>(all, [&](Work& work) {
      work.template combine_spans<CanonicalMax<Acc>>(0, lowest<Acc>(), keep_heaviest);
      const auto weights = work.weights();
      work.template combine_spans<CanonicalSum<Acc>>(1, -Acc(0), keep_divisor);
      work.write(weights);
    });
  }

 private:
  static __device__ void keep_heaviest(unsigned output, Acc heaviest) { Work::of_columns()[output] = heaviest; }
  static __device__ void keep_divisor(unsigned output, Acc sum) { Work::of_columns()[output] = Weight::divisor(sum); }
};

}  // namespace hone
