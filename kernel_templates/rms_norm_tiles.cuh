// RMS normalisation of rows that are too short or too misaligned for vectorized loads of their own, in tiles
// (row_tiles.cuh). A thread holds the weights of its columns for all of its rows. Without residuals.
#pragma once

#include "monoids.cuh"
#include "rms_norm_arguments.h"
#include "row_tiles.cuh"

namespace hone {

template <class T, class Index, bool kHasWeight, unsigned kBlockThreads, unsigned kGroup, unsigned kLeast,
          unsigned kEach, unsigned kRows>
struct RmsNormTiles {
  using Tiles = RowTiles<T, T, Index, kBlockThreads, kGroup, kLeast, kEach, kRows>;
  using Matrices = typename Tiles::Matrices;

  float mean_factor, eps;
  float weights[kEach];  ///< of the columns of this lane

  explicit __device__ RmsNormTiles(const RmsNormArguments& all) : mean_factor(all.mean_factor), eps(all.eps) {
    const auto* const weight = static_cast<const T*>(all.weight);
    const auto columns = static_cast<unsigned>(all.columns);
    unrolled<kEach>([&](unsigned k) {
      const unsigned column = threadIdx.x % kGroup + k * kGroup;
      weights[k] = kHasWeight && column < columns ? convert<float>(weight[column]) : 1.0f;
    });
  }

  __device__ float factor_of(float sum) const { return rsqrtf(sum * mean_factor + eps); }
  __device__ float result_of(float element, unsigned k, float factor) const {
    return kHasWeight ? element * factor * weights[k] : element * factor;
  }

  /// Replaces the elements of a thread's row by their results.
  template <unsigned kColumns>
  __device__ void row(float* values) const {
    const float factor =
        factor_of(tree_of<monoid::Plus, kColumns>([&](unsigned k) { return values[k] * values[k]; }));
    unrolled<kColumns>([&](unsigned k) { values[k] = result_of(values[k], k, factor); });
  }

  /// Computes a group's row. All lanes of the warp call it; lanes without a row write nothing.
  __device__ void group_row(const T* in, T* out, bool is_own, unsigned columns) const {
    const unsigned lane = threadIdx.x % kGroup;
    float values[kEach];
    float sum = 0;
    Tiles::for_elements(columns, [&](unsigned k) {
      values[k] = Tiles::is_there(k, columns) ? convert<float>(in[lane + k * kGroup]) : 0.0f;
      sum += values[k] * values[k];
    });
#pragma unroll
    for (unsigned mask = kGroup / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (!is_own) return;
    const float factor = factor_of(sum);
    Tiles::for_elements(columns, [&](unsigned k) {
      if (Tiles::is_there(k, columns)) out[lane + k * kGroup] = convert<T>(result_of(values[k], k, factor));
    });
  }

  static __device__ void run(const RmsNormArguments& all) {
    const Matrices matrices{static_cast<const T*>(all.x),      static_cast<T*>(all.y), static_cast<Index>(all.rows),
                            static_cast<unsigned>(all.columns), all.in_pitch,          all.out_pitch};
    Tiles::start(matrices);
    const RmsNormTiles kernel(all);  // weights are loaded meanwhile
    Tiles::for_each_tile(matrices, [&](const T* in, T* out, unsigned rows) {
      if constexpr (Tiles::kUnrollsRows)
        Tiles::template for_thread_rows<float>(typename Tiles::template EachRow<RmsNormTiles>{kernel}, in, out, rows,
                                               matrices.columns);
      else
        Tiles::for_group_rows(matrices.columns, rows, [&](unsigned at, bool is_own) {
          kernel.group_row(in + at, out + at, is_own, matrices.columns);
        });
    });
  }
};

}  // namespace hone
