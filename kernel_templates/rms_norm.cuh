// RMS normalisation of the rows of a matrix: y = h / sqrt(mean(h²) + eps) · weight, where h is x, or x + residual,
// which is then written as well. Sums are accumulated in f32; h is rounded before it is squared, y once.
//
// kRowThreads threads share a row: lanes of a warp, with kRows rows at once; a block; or a cluster of blocks. A thread
// holds kPacks packs of the row in registers between the sum and the results, and the weights of these columns for all
// of its rows. With kHasRest a row may be longer, and the rest is read twice. A grid-stride loop over rows; the order
// of additions depends only on the columns and the policy.
//
// A row is whole packs, as wide as the alignment of all rows allows, from one element to 16 bytes. y may lie on x, and
// h on residual: a thread writes no element that another one reads.
//
// Constraints: kRowThreads is a power of two; Index holds the elements of a row and a tile more.
#pragma once

#include "combine.cuh"
#include "pack_range.cuh"
#include "reduce_ops.cuh"
#include "rms_norm_arguments.h"

namespace hone {

template <class T, class Index_, unsigned kElements, bool kHasWeight_, bool kHasResidual_, unsigned kBlockThreads,
          unsigned kRowThreads_, unsigned kPacks_, unsigned kRows, bool kHasRest>
struct RmsNorm {
  using Index = Index_;
  static constexpr bool kHasWeight = kHasWeight_, kHasResidual = kHasResidual_;
  static constexpr unsigned kRowThreads = kRowThreads_, kPacks = kPacks_;

  /// Packs behind the end of a row are zeros.
  struct Squares : SumOfSquares<T, float, Index, false> {
    static constexpr bool kHasNeutral = true;
    static __device__ T neutral() { return convert<T>(0.0f); }
  };

  using ElementPack = Pack<T, kElements>;
  using Range = PackRange<OneArray<T, kElements>, Index>;
  static constexpr unsigned kClusterBlocks = kRowThreads > kBlockThreads ? kRowThreads / kBlockThreads : 1;
  static constexpr unsigned kGroups = kRowThreads < kBlockThreads ? kBlockThreads / kRowThreads : 1;
  using CombineRow = Combine<Squares, kRowThreads / kClusterBlocks, kClusterBlocks, Grid::none, true, Tail::warp,
                             Exchange::receipts>;
  static constexpr unsigned kTileRows = kGroups * kRows;
  static constexpr unsigned kRestPacks = kPacks < 2 ? kPacks : 2;  ///< loads in flight for what is not held
  static_assert(kBlockThreads % kWarpThreads == 0 && (kBlockThreads & (kBlockThreads - 1)) == 0);
  static_assert((kRowThreads <= kWarpThreads || kRowThreads % kBlockThreads == 0) && (kGroups > 1 || kRows == 1));

  /// Every kRowThreads-th pack of an array, from one of them on.
  template <unsigned kCount> using Tile = ElementPack[kCount];

  /// Row r of all arrays; behind the last row, an empty one.
  struct Row {
    const RmsNormArguments& all;
    unsigned long long r;
    Range x = row_of(all.x, all, r, all.in_pitch), residual = row_of(all.residual, all, r, all.in_pitch);
    Range y = row_of(all.y, all, r, all.out_pitch), h = row_of(all.h, all, r, all.out_pitch);

    /// The first `packs` packs of it.
    __device__ Row beginning(Index packs) const {
      Row some = *this;
      if (packs < x.packs) some.x.packs = some.residual.packs = some.y.packs = some.h.packs = packs;
      return some;
    }
  };

  static __device__ Range row_of(const void* array, const RmsNormArguments& all, unsigned long long r,
                                 long long pitch) {
    const Index columns = r < all.rows ? static_cast<Index>(all.columns) : 0;
    return Range::template of<false>({static_cast<const T*>(array) + static_cast<long long>(r) * pitch}, columns);
  }

  template <unsigned kCount>
  static __device__ void load(Tile<kCount>& tile, const Range& from, Index first) {
    from.template load_tail<Squares>(tile, first, Index(kRowThreads));
  }

  static __device__ void store(const Range& to, Index p, const ElementPack& pack) {
    if (p < to.packs) reinterpret_cast<ElementPack*>(const_cast<T*>(to.source.in))[p] = pack;
  }

  static __device__ T added(T x, T residual) { return convert<T>(convert<float>(x) + convert<float>(residual)); }

  static __device__ T result_of(T element, T weight, float factor) {
    const float value = convert<float>(element) * factor;
    return convert<T>(kHasWeight ? value * convert<float>(weight) : value);
  }

  /// Adds the residual to x, in place, and writes the sum.
  template <unsigned kCount>
  static __device__ void add(Tile<kCount>& tile, const Tile<kCount>& residual, const Row& row, Index first) {
    unrolled<kCount>([&](unsigned u) {
      tile[u] = ElementPack::of([&](unsigned e) { return added(tile[u][e], residual[u][e]); });
      store(row.h, first + u * kRowThreads, tile[u]);
    });
  }

  template <unsigned kCount>
  static __device__ void write(const Tile<kCount>& tile, const Tile<kCount>& weights, const Row& row, Index first,
                               float factor) {
    const auto held = launder(tile), weight = launder(weights);
    unrolled<kCount>([&](unsigned u) {
      const auto result = [&](unsigned e) { return result_of(held.values[u][e], weight.values[u][e], factor); };
      store(row.y, first + u * kRowThreads, ElementPack::of(result));
    });
  }

  /// Calls act(tile, first) for each tile of what a thread does not hold of a row, from pack `from` on, of h where that
  /// was written before.
  template <bool kAgain, class Act>
  static __device__ void for_rest(const Row& row, Index from, const Act& act) {
#pragma unroll 1
    for (Index p = from; kHasRest && p < row.x.packs; p += kRestPacks * kRowThreads) {
      Tile<kRestPacks> tile, residual;
      load(tile, kAgain && kHasResidual ? row.h : row.x, p);
      if constexpr (kHasResidual && !kAgain) {
        load(residual, row.residual, p);
        add(tile, residual, row, p);
      }
      act(tile, p);
    }
  }

  /// Adds the squares of what is not held.
  static __device__ void add_rest(float& sum, const Row& row, Index from) {
    for_rest<false>(row, from, [&](const Tile<kRestPacks>& rest, Index) {
      Squares::accumulate(sum, rest, Index(0), Index(0));
    });
  }

  static __device__ void write_rest(const Row& row, const Range& weight, Index from, float factor) {
    for_rest<true>(row, from, [&](const Tile<kRestPacks>& rest, Index p) {
      Tile<kRestPacks> weights;
      if constexpr (kHasWeight) load(weights, weight, p);
      write(rest, weights, row, p, factor);
    });
  }

  static __device__ float factor_of(float sum, const RmsNormArguments& all) {
    return rsqrtf(sum * all.mean_factor + all.eps);
  }

  static __device__ void run(const RmsNormArguments& all) {
    CombineRow combine;
    const unsigned thread = combine.rank();
    const Index rest = thread + Index(kPacks) * kRowThreads;
    const Range weight = row_of(all.weight, all, 0, 0);
    Tile<kPacks> weights;
    if constexpr (kHasWeight) load(weights, weight, thread);
    const unsigned long long stride = static_cast<unsigned long long>(gridDim.x / kClusterBlocks) * kTileRows;
    unsigned long long tile = static_cast<unsigned long long>(blockIdx.x / kClusterBlocks) * kTileRows;
    for (; tile < all.rows; tile += stride) {
      const unsigned long long first = tile + (kGroups > 1 ? threadIdx.x / kRowThreads : 0);
      Tile<kPacks> held[kRows], residuals[kRows];
      float sums[kRows];
      unrolled<kRows>([&](unsigned r) {
        const Row row{all, first + r * kGroups};
        load(held[r], row.x, thread);
        if constexpr (kHasResidual) load(residuals[r], row.residual, thread);
      });
      unrolled<kRows>([&](unsigned r) {
        const Row row{all, first + r * kGroups};
        if constexpr (kHasResidual) add(held[r], residuals[r], row, thread);
        sums[r] = Squares::identity();
        Squares::accumulate(sums[r], held[r], Index(0), Index(0));
        add_rest(sums[r], row, rest);
      });
      unrolled<kRows>([&](unsigned r) { sums[r] = combine.to_all(sums[r]); });
      unrolled<kRows>([&](unsigned r) {
        const Row row{all, first + r * kGroups};
        const float factor = factor_of(sums[r], all);
        write_rest(row, weight, rest, factor);
        write(held[r], weights, row, thread, factor);
      });
    }
  }
};

}  // namespace hone
