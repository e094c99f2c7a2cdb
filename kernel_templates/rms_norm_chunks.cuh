// RMS normalisation of long rows that many blocks share: the Kernel of row_chunks.cuh and row_pipeline.cuh. Chunks
// publish the sum of their squares. Where x and a residual are added, they write the sum h as well, and h is read again
// instead of x.
//
// Rows may begin at any element. Packs have 16 bytes and are aligned in y. Where they are not aligned in another array
// then, they are read by shifted loads. These reach into the packs beside them, and so the first and the last pack of
// such a row are single elements, as are all before the first line of 256 bytes of y. Chunks begin with a line.
// kAligned: all rows of all arrays are whole numbers of aligned packs.
#pragma once

#include "column_tile.cuh"
#include "rms_norm.cuh"
#include "row_chunks.cuh"

namespace hone {

template <class T, class Index_, bool kAligned, bool kHasWeight, bool kHasResidual, unsigned kBlockThreads_>
struct RmsNormChunks {
  using Index = Index_;
  using Arguments = RmsNormArguments;
  using State = float;
  static constexpr unsigned kBlockThreads = kBlockThreads_, kElements = 16 / sizeof(T), kLinePacks = 16;
  using Kernel = RmsNorm<T, Index, kElements, kHasWeight, kHasResidual, kBlockThreads, kBlockThreads, 1, 1, false>;
  using Squares = typename Kernel::Squares;
  using ElementPack = typename Kernel::ElementPack;
  using CombineBlock = typename Kernel::CombineRow;

  /// A row of an array.
  struct Line {
    T* elements;
    unsigned shift = 0;  ///< from the last aligned address to a pack, in elements

    __device__ Line(const void* array, unsigned r, long long pitch)
        : elements(const_cast<T*>(static_cast<const T*>(array)) + static_cast<long long>(r) * pitch) {}

    __device__ T* pack(Index head, Index p) const { return elements + head + p * kElements; }
  };

  /// A chunk of a row, for one of the threads of a block.
  struct Row {
    using Index = Index_;
    const Arguments& all;
    unsigned r;
    Line x{all.x, r, all.in_pitch}, residual{all.residual, r, all.in_pitch}, weight{all.weight, 0, 0};
    Line y{all.y, r, all.out_pitch}, h{all.h, r, all.out_pitch};
    typename Kernel::Range range = Kernel::Range::template of<!kAligned>({y.elements}, static_cast<Index>(all.columns));
    Index first = threadIdx.x, end, singles;

    __device__ Row(const Arguments& arguments, unsigned row) : all(arguments), r(row) {
      if constexpr (!kAligned) {
        bool is_shifted = shift(x);
        if constexpr (kHasWeight) is_shifted |= shift(weight);
        if constexpr (kHasResidual) is_shifted |= shift(residual) | shift(h);
        if (is_shifted) {
          range.head += kElements;
          range.packs = range.packs < 2 ? 0 : range.packs - 2;
        }
        const Index before_line = range.template packs_before_line<kBlockThreads>();
        range.head += before_line * kElements;
        range.packs -= before_line;
      }
      end = range.packs;
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

    __device__ bool shift(Line& line) const {
      line.shift = elements_behind_alignment<sizeof(ElementPack)>(line.pack(range.head, 0));
      return line.shift != 0;
    }

    /// Loads packs p, p + kBlockThreads, … of an array; behind the last one, zeros.
    template <bool kForTheLastTime, unsigned kTile>
    __device__ void load(ElementPack (&tile)[kTile], const Line& from, Index p) const {
      if (kAligned || from.shift == 0) {
        unrolled<kTile>([&](unsigned u) {
          const auto* const pack = reinterpret_cast<const ElementPack*>(from.pack(range.head, p + u * kBlockThreads));
          tile[u] = ElementPack::filled(Squares::neutral());
          if (p + u * kBlockThreads < end) tile[u] = kForTheLastTime ? load_streaming(pack) : *pack;
        });
      } else {
        unrolled<kTile>([&](unsigned u) {
          auto pack = PackAcross<T, kElements>::filled(Squares::neutral());
          if (p + u * kBlockThreads < end) pack = pack.load(from.pack(range.head, p + u * kBlockThreads));
          tile[u] = pack.after(from.shift);
        });
      }
    }

    /// Stores a pack of the results, or of h, which will be read again.
    __device__ void store(Index p, const ElementPack& pack) const {
      if (p < end) store_streaming(reinterpret_cast<ElementPack*>(y.pack(range.head, p)), pack);
    }
    __device__ void store_sum(Index p, const ElementPack& pack) const {
      if (p >= end) return;
      T* const to = h.pack(range.head, p);
      if (kAligned || h.shift == 0) *reinterpret_cast<ElementPack*>(to) = pack;
      else unrolled<kElements>([&](unsigned e) { to[e] = pack[e]; });
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
        unrolled<kTile>([&](unsigned u) {
          tile[u] = ElementPack::of([&](unsigned e) { return Kernel::added(tile[u][e], residual[u][e]); });
          chunk.store_sum(p + u * kBlockThreads, tile[u]);
        });
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
    const Line& of = kHasResidual ? chunk.h : chunk.x;
    constexpr Index kStep = kTile * kBlockThreads;
    if (chunk.first < chunk.end) {
      for (Index p = chunk.first + (chunk.end - chunk.first - 1) / kStep * kStep;; p -= kStep) {
        ElementPack tile[kTile], weights[kTile];
        chunk.template load<true>(tile, of, p);
        if constexpr (kHasWeight) chunk.template load<false>(weights, chunk.weight, p);
        unrolled<kTile>([&](unsigned u) {
          const auto result = [&](unsigned e) { return Kernel::result_of(tile[u][e], weights[u][e], factor); };
          chunk.store(p + u * kBlockThreads, ElementPack::of(result));
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
