// Softmax of rows that are too short or too misaligned for vectorized loads of their own: a block copies a contiguous
// run of rows through shared memory (StagedRun), and groups of kGroup lanes compute single elements from there. Rows
// that are not contiguous are copied element by element. While a run is written, the next one is being loaded.
//
// Constraints: a row has at least kGroup · kLeast elements and at most kGroup · kEach. Dynamic shared memory holds
// kRows runs of rows in and out, each with 16 bytes more for its alignment.
#pragma once

#include "dynamic_smem.cuh"
#include "softmax.cuh"
#include "staged_run.cuh"

namespace hone {

template <class Types, unsigned kBlockThreads, unsigned kGroup, unsigned kLeast, unsigned kEach, unsigned kRows>
struct SoftmaxTiles {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using State = typename Types::State;
  using Scale = typename Types::Scale;
  using Rows = SoftmaxRows<Types>;
  using InRun = StagedRun<In, kBlockThreads, (kRows * kEach * sizeof(In) + 15) / 16>;
  using OutRun = StagedRun<Out, kBlockThreads, (kRows * kEach * sizeof(Out) + 15) / 16>;
  static constexpr unsigned kGroups = kBlockThreads / kGroup;
  static constexpr unsigned kTileRows = kGroups * kRows;

  /// Bytes of shared memory for a run.
  static __device__ unsigned area_bytes(unsigned columns, unsigned element_bytes) {
    return (kTileRows * columns * element_bytes + 15) / 16 * 16 + 16;
  }

  /// Copies rows element by element, unless they are contiguous on both sides.
  template <class T>
  static __device__ bool copied_elements(T* to, long long to_pitch, const T* from, long long from_pitch, unsigned rows,
                                         unsigned columns) {
    if (to_pitch == from_pitch) return false;
    for (unsigned row = threadIdx.x / kGroup; row < rows; row += kGroups)
      for (unsigned j = threadIdx.x % kGroup; j < columns; j += kGroup)
        to[row * to_pitch + j] = from[row * from_pitch + j];
    return true;
  }

  static __device__ void load(const Rows& all, Index first, typename InRun::ElementPack* area) {
    const auto columns = static_cast<unsigned>(all.columns);
    const unsigned rows = at_most(all.rows - first, kTileRows);
    const In* const in = all.in(first);
    if (!copied_elements(InRun::place(area, in), columns, in, all.arguments.in_pitch, rows, columns))
      InRun::copy(area, in, rows * columns);
  }

  static __device__ void store(const Rows& all, Index first, const Out* staged) {
    const auto columns = static_cast<unsigned>(all.columns);
    const unsigned rows = at_most(all.rows - first, kTileRows);
    if (!copied_elements(all.out(first), all.arguments.out_pitch, staged, columns, rows, columns))
      OutRun::store(all.out(first), staged, rows * columns);
  }

  /// Calls act(k) for each k such that some lane of the group has a k-th element. Recursive: every k is a constant.
  template <unsigned k = 0, class Act>
  static __device__ void for_elements(unsigned columns, const Act& act) {
    if constexpr (k < kEach) {
      if (k >= kLeast && k * kGroup >= columns) return;
      act(k);
      for_elements<k + 1>(columns, act);
    }
  }

  /// Computes one staged row. All lanes of the warp call it; lanes without a row compute another and write nothing.
  static __device__ void work(const In* in, Out* out, bool is_own, unsigned columns, const Scale& scale) {
    const unsigned lane = threadIdx.x % kGroup;
    const auto is_there = [&](unsigned k) { return k < kLeast || lane + k * kGroup < columns; };
    Acc values[kEach];
    Acc heaviest = scale.neutral();
    for_elements(columns, [&](unsigned k) {
      values[k] = is_there(k) ? convert<Acc>(in[lane + k * kGroup]) : scale.neutral();
      heaviest = scale.heavier(heaviest, values[k]);
    });
    const SoftmaxWeights<Acc> weights(heaviest, scale);
    Acc sum(0);
    for_elements(columns, [&](unsigned k) {
      const Acc weight = weights.of(values[k]);
      sum += weight;
      if constexpr (!Types::kLog) values[k] = weight;
    });
    const State row = scale.template in_all_lanes<kGroup>(State{scale.oriented(heaviest), sum});
    if (!is_own) return;
    const typename Types::Result result(row, scale);
    const Acc of_weights = result.of_weights(heaviest);
    for_elements(columns, [&](unsigned k) {
      if (!is_there(k)) return;
      if constexpr (Types::kLog) out[lane + k * kGroup] = convert<Out>(result.of(values[k]));
      else out[lane + k * kGroup] = convert<Out>(values[k] * of_weights);
    });
  }

  static __device__ void run(const typename Rows::Arguments& arguments) {
    const Rows all{arguments};
    const auto columns = static_cast<unsigned>(all.columns);
    auto* const in_area = reinterpret_cast<typename InRun::ElementPack*>(dynamic_smem);
    auto* const out_area =
        reinterpret_cast<typename OutRun::ElementPack*>(dynamic_smem + area_bytes(columns, sizeof(In)));
    pdl_release_then_wait();
    const Index stride = static_cast<Index>(gridDim.x) * kTileRows;
    Index first = static_cast<Index>(blockIdx.x) * kTileRows;
    if (first < all.rows) load(all, first, in_area);
    for (; first < all.rows; first += stride) {
      wait_for_copies();
      __syncthreads();
      const unsigned rows = at_most(all.rows - first, kTileRows);
      const In* const in = InRun::place(in_area, all.in(first));
      Out* const out = OutRun::place(out_area, all.out(first));
      for (unsigned row = threadIdx.x / kGroup; row < kTileRows; row += kGroups) {
        const bool is_own = row < rows;
        const unsigned at = is_own ? row * columns : 0;
        work(in + at, out + at, is_own, columns, all.scale);
      }
      __syncthreads();
      if (first + stride < all.rows) load(all, first + stride, in_area);
      store(all, first, out);
    }
  }
};

}  // namespace hone
