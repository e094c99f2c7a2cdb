// RMS normalisation of long rows that many blocks share: the Kernel of row_chunks.cuh and row_pipeline.cuh. Chunks
// publish the sum of their squares. Where x and a residual are added, they write the sum h as well, and h is read again
// instead of x.
//
// Rows may begin at any element (rms_norm_row.cuh). Packs have 16 bytes and are aligned in y. All before the first line
// of 256 bytes of y are single elements, and chunks begin with a line. kAligned: all rows of all arrays are whole
// numbers of aligned packs.
#pragma once

#include "rms_norm.cuh"
#include "row_chunks.cuh"

namespace hone {

template <class T, class Index_, bool kAligned, bool kHasWeight, bool kHasResidual, unsigned kBlockThreads_>
struct RmsNormChunks {
  using Index = Index_;
  using Arguments = RmsNormArguments;
  using State = float;
  static constexpr unsigned kBlockThreads = kBlockThreads_, kElements = 16 / sizeof(T), kLinePacks = 16;
  using Kernel =
      RmsNorm<T, Index, kElements, kHasWeight, kHasResidual, kBlockThreads, kBlockThreads, 1, 1, false, !kAligned>;
  using Squares = typename Kernel::Squares;
  using ElementPack = typename Kernel::ElementPack;
  using CombineBlock = typename Kernel::CombineRow;

  /// A chunk of a row, for one of the threads of a block.
  struct Row : Kernel::Row {
    using Kernel::Row::end, Kernel::Row::range;
    Index first = threadIdx.x, singles;

    __device__ Row(const Arguments& arguments, unsigned row) : Kernel::Row(arguments, row, threadIdx.x) {
      if constexpr (!kAligned) {
        const Index before_line = range.template packs_before_line<kBlockThreads>();
        range.head += before_line * kElements;
        range.packs -= before_line;
        end = range.packs;
      }
      singles = range.singles();
    }

    /// Chunk `part` of the `parts` chunks of the row. The single elements belong to the first.
    __device__ Row chunk(unsigned part, unsigned parts) const {
      Row chunk = *this;
      const Index each = ((range.packs + parts - 1) / parts + kLinePacks - 1) / kLinePacks * kLinePacks;
      const Index begin = static_cast<Index>(part) * each;
      chunk.first += begin;
      chunk.end = begin + each < range.packs ? begin + each : range.packs;
      if (part != 0) chunk.singles = 0;
      return chunk;
    }

    __device__ void for_singles(const auto& act) const {
#pragma unroll 1
      for (Index i = threadIdx.x; i < singles; i += kBlockThreads) act(range.single(i));
    }
  };

  /// The rows of a call.
  struct Rows {
    const Arguments& arguments;
    unsigned rows = static_cast<unsigned>(arguments.rows);

    template <unsigned>
    __device__ Row row(unsigned r, unsigned) const {
      return Row(arguments, r);
    }
  };

  static __device__ CombineBlock combine(const Rows&) { return CombineBlock(); }

  template <unsigned kTile>
  static __device__ float chunk_state(const Row& chunk, const Rows&, CombineBlock& combine) {
    float sum = Squares::identity();
    for (Index p = chunk.first; p < chunk.end; p += kTile * kBlockThreads) {
      ElementPack tile[kTile], residual[kTile];
      chunk.template load<kHasResidual>(tile, chunk.x, p);
      if constexpr (kHasResidual) {
        chunk.template load<true>(residual, chunk.residual, p);
        Kernel::add(tile, residual, chunk, p);
      }
      Squares::accumulate(sum, tile, Index(0), Index(0));
    }
    chunk.for_singles([&](Index i) {
      T element = chunk.x.elements[i];
      if constexpr (kHasResidual)
        element = chunk.h.elements[i] = Kernel::added(element, chunk.residual.elements[i]);
      sum = Squares::combine(sum, Squares::of(element, Index(0)));
    });
    return combine.to_all(sum);
  }

  static __device__ float row_state(const float* of_chunks, unsigned parts, const Rows&, CombineBlock& combine) {
    return combine.to_all(combine_published<Squares>(of_chunks, threadIdx.x, parts, kBlockThreads));
  }

  /// In reverse: the packs that were read last may still be in cache.
  template <unsigned kTile>
  static __device__ void write_chunk(const Row& chunk, float sum, const Rows& all) {
    const float factor = Kernel::factor_of(sum, all.arguments);
    const auto& of = kHasResidual ? chunk.h : chunk.x;
    constexpr Index kStep = kTile * kBlockThreads;
    if (chunk.first < chunk.end) {
      for (Index p = chunk.first + (chunk.end - chunk.first - 1) / kStep * kStep;; p -= kStep) {
        ElementPack tile[kTile], weights[kTile];
        chunk.template load<true>(tile, of, p);
        if constexpr (kHasWeight) chunk.template load<false>(weights, chunk.weight, p);
        chunk.template store<kTile, true>(chunk.y, p, [&](unsigned u) {
          return ElementPack::of([&](unsigned e) { return Kernel::result_of(tile[u][e], weights[u][e], factor); });
        });
        if (p == chunk.first) break;
      }
    }
    chunk.for_singles([&](Index i) {
      const T weight = kHasWeight ? chunk.weight.elements[i] : of.elements[i];
      chunk.y.elements[i] = Kernel::result_of(of.elements[i], weight, factor);
    });
  }
};

}  // namespace hone
