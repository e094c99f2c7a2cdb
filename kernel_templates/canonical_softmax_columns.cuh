// Softmax, or its logarithm, over the middle extent of outer × reduced × inner: a column gets the bits that a row of
// its elements gets by canonical_softmax.cuh.
//
// A block has a tile of kLanes packs of neighbouring columns, whose chunks are shared by its threads (ColumnChunk). It
// visits them twice: for the heaviest elements and the sums of weights that are relative to 1, and for the results. It
// visits them once more for the sums if a column's weights are relative to another power of two. A single chunk that is
// a single batch stays in registers. With several spans of chunks for each tile there are three launches: the first
// publishes a heaviest element and a sum for each span of each column, the second corrects sums, mostly none, and the
// blocks of the third make the trees of the spans.
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
      work.find_both(keep);
      if (!work.are_guessed()) work.find_sums_again(keep);
      work.write();
    });
  }

  static __device__ void publish(const Arguments& all) {
    Work::template for_items<false>(all, [&](Work& work) {
      work.find_both([&](unsigned which, unsigned output, Acc found) {
        *work.partial(which, work.part, output) = found;
      });
    });
  }

  static __device__ void correct(const Arguments& all) {
    Work::template for_items<false>(all, [&](Work& work) {
      work.template combine_spans<CanonicalMax<Acc>>(0, lowest<Acc>(), keep);
      if (work.are_guessed()) return;
      work.find_sums_again([&](unsigned which, unsigned output, Acc sum) {
        *work.partial(which, work.part, output) = sum;
      });
    });
  }

  /// The spans that were read last may still be in cache, so they come first.
  static __device__ void write_spans(const Arguments& all) {
    Work::template for_items<true>(all, [&](Work& work) {
      work.template combine_spans<CanonicalMax<Acc>>(0, lowest<Acc>(), keep);
      work.template combine_spans<CanonicalSum<Acc>>(1, -Acc(0), keep);
      work.write();
    });
  }

 private:
  static __device__ void keep(unsigned which, unsigned output, Acc found) { Work::of_columns(which)[output] = found; }
};

}  // namespace hone
