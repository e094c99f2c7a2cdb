// RMS normalisation of the rows of a matrix: y = h / sqrt(mean(h²) + eps) · weight, where h is x, or x + residual,
// which is then written as well. Sums are accumulated in f32; h is rounded before it is squared, y once.
//
// kRowThreads threads share a row: lanes of a warp, with kRows rows at once; a block; or a cluster of blocks. A thread
// holds kPacks packs of the row in registers between the sum and the results. With kHasRest a row may be longer, and
// the rest is read twice. A grid-stride loop over rows; the order of additions depends only on the columns, the policy
// and, with kAnyStart, where a row begins.
//
// Rows are whole packs, as wide as the alignment of all rows allows, from one element to 16 bytes. A thread then holds
// the weights of its columns for all of its rows. With kAnyStart, packs have 16 bytes wherever rows begin
// (rms_norm_row.cuh), and a thread loads the weights for each row, or the block holds them in shared memory. y may lie
// on x, and h on residual: a thread writes no element that another one uses.
//
// Constraints: kRowThreads is a power of two; Index holds the elements of a row and a tile more. With kAnyStart a row
// has as many threads as four packs have elements, at least.
#pragma once

#include "combine.cuh"
#include "reduce_ops.cuh"
#include "rms_norm_row.cuh"
#include "weight_segments.cuh"

namespace hone {

template <class T, class Index_, unsigned kElements, bool kHasWeight_, bool kHasResidual_, unsigned kBlockThreads,
          unsigned kRowThreads_, unsigned kPacks_, unsigned kRows, bool kHasRest, bool kAnyStart,
          AlignedIn kAlignedIn = AlignedIn::y, bool kSharesWeights = false>
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
  using Row = RmsNormRow<T, Index, kElements, kAnyStart, kHasWeight, kHasResidual, kRowThreads, kAlignedIn>;
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
    });
    row.template store<kCount>(row.h, first, [&](unsigned u) { return tile[u]; });
  }

  /// weight_of(u): the weights of pack u.
  template <unsigned kCount>
  static __device__ void write(const Tile<kCount>& tile, const auto& weight_of, const Row& row, Index first,
                               float factor) {
    const auto held = launder(tile);
    row.template store<kCount>(row.y, first, [&](unsigned u) {
      const ElementPack weight = weight_of(u);
      return ElementPack::of([&](unsigned e) { return result_of(held.values[u][e], weight[e], factor); });
    });
  }
  template <unsigned kCount>
  static __device__ auto weights_in(const Tile<kCount>& weights) {
    return [packs = launder(weights)](unsigned u) { return packs.values[u]; };
  }

  /// The weight of a thread's single element.
  struct SingleWeight {
    T single;

    __device__ void load(const Row& row) {
      if (kHasWeight && row.has_single()) single = row.weight.elements[row.single()];
    }
  };

  /// The weights of what a thread holds of a row, in registers.
  struct Weights : SingleWeight {
    Tile<kPacks> packs;

    __device__ void load(const Row& row) {
      if constexpr (kHasWeight) row.load(packs, row.weight, row.thread);
      SingleWeight::load(row);
    }
    __device__ auto of(const Row&) const { return weights_in(packs); }
  };

  /// The weights of what a thread holds of any row, in shared memory.
  struct SharedWeights : SingleWeight {
    WeightSegments<T, kElements, kPacks, kBlockThreads, kRowThreads> segments;

    /// They are there after wait_for_copies() by all threads of the block and a barrier.
    __device__ void start_copies(const RmsNormArguments& all, unsigned thread) {
      segments.start_copies(static_cast<const T*>(all.weight), all.columns, thread - threadIdx.x);
    }
    __device__ auto of(const Row& row) const {
      return [this, head = static_cast<unsigned>(row.range.head)](unsigned u) { return segments.load(u, head); };
    }
  };

  /// A thread's part of a row in registers: packs, and a single element where there is one for it.
  struct Held {
    Tile<kPacks> packs, residuals;
    T single, residual;

    __device__ void load(const Row& row) {
      constexpr unsigned kAtOnce = kSharesWeights ? 4 : kPacks;  // without weights, few registers are enough
      row.template load<false, kAtOnce>(packs, row.x, row.thread);
      if constexpr (kHasResidual) row.load(residuals, row.residual, row.thread);
      if (row.has_single()) {
        single = row.x.elements[row.single()];
        if constexpr (kHasResidual) residual = row.residual.elements[row.single()];
      }
    }

    /// Returns the sum of the squares, of x and the residual where there is one.
    __device__ float squares(const Row& row) {
      float sum = Squares::identity();
      if constexpr (kHasResidual) add(packs, residuals, row, row.thread);
      Squares::accumulate(sum, packs, Index(0), Index(0));
      if (row.has_single()) {
        if constexpr (kHasResidual) row.h.elements[row.single()] = single = added(single, residual);
        sum = Squares::combine(sum, Squares::of(single, Index(0)));
      }
      return sum;
    }

    __device__ void write(const Row& row, const auto& weights, float factor) const {
      RmsNorm::write(packs, weights.of(row), row, row.thread, factor);
      if (row.has_single()) row.y.elements[row.single()] = result_of(single, weights.single, factor);
    }
  };

  /// Calls act(tile, first) for each tile of what a thread does not hold of a row, from pack `from` on, of h where that
  /// was written before.
  template <bool kAgain, class Act>
  static __device__ void for_rest(const Row& row, Index from, const Act& act) {
#pragma unroll 1
    for (Index p = from; kHasRest && p < row.end; p += kRestPacks * kRowThreads) {
      Tile<kRestPacks> tile, residual;
      row.load(tile, kAgain && kHasResidual ? row.h : row.x, p);
      if constexpr (kHasResidual && !kAgain) {
        row.load(residual, row.residual, p);
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

  static __device__ void write_rest(const Row& row, Index from, float factor) {
    for_rest<true>(row, from, [&](const Tile<kRestPacks>& rest, Index p) {
      Tile<kRestPacks> weights;
      if constexpr (kHasWeight) row.load(weights, row.weight, p);
      write(rest, weights_in(weights), row, p, factor);
    });
  }

  static __device__ float factor_of(float sum, const RmsNormArguments& all) {
    return rsqrtf(sum * all.mean_factor + all.eps);
  }

  static __device__ void run(const RmsNormArguments& all) {
    CombineRow combine;
    const unsigned thread = combine.rank();
    const Index rest = thread + Index(kPacks) * kRowThreads;
    static_assert(!kAnyStart || kRows == 1);
    typename Select<kSharesWeights, SharedWeights, Weights>::type weights;
    if constexpr (kSharesWeights) weights.start_copies(all, thread);
    else if constexpr (!kAnyStart) weights.load(Row(all, 0, thread));
    const unsigned long long stride = static_cast<unsigned long long>(gridDim.x / kClusterBlocks) * kTileRows;
    unsigned long long tile = static_cast<unsigned long long>(blockIdx.x / kClusterBlocks) * kTileRows;
    for (; tile < all.rows; tile += stride) {
      const unsigned long long first = tile + (kGroups > 1 ? threadIdx.x / kRowThreads : 0);
      Held held[kRows];
      float sums[kRows];
      unrolled<kRows>([&](unsigned r) { held[r].load(Row(all, first + r * kGroups, thread)); });
      if constexpr (kAnyStart)
        unrolled<kRows>([&](unsigned r) { weights.load(Row(all, first + r * kGroups, thread)); });
      unrolled<kRows>([&](unsigned r) {
        const Row row(all, first + r * kGroups, thread);
        sums[r] = held[r].squares(row);
        add_rest(sums[r], row, rest);
      });
      if constexpr (kSharesWeights) wait_for_copies();  // to_all() has the barrier
      unrolled<kRows>([&](unsigned r) { sums[r] = combine.to_all(sums[r]); });
      unrolled<kRows>([&](unsigned r) {
        const Row row(all, first + r * kGroups, thread);
        const float factor = factor_of(sums[r], all);
        write_rest(row, rest, factor);
        held[r].write(row, weights, factor);
      });
    }
  }
};

}  // namespace hone
