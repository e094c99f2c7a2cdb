// Softmax of rows that are too short or too misaligned for vectorized loads of their own: a block copies a contiguous
// run of rows through shared memory in packs of 16 bytes (cp.async), and groups of kGroup lanes compute single elements
// from there.
//
// Rows that are not contiguous are copied element by element. While a run is written, the next one is being loaded.
// Constraints: a row has at least kGroup · kLeast elements and at most kGroup · kEach. Dynamic shared memory holds
// kRows runs of rows in and out, each with 16 bytes more for its alignment.
#pragma once

#include "softmax.cuh"

namespace hone {

/// The run of elements that a block moves between global memory and shared memory.
template <class T, unsigned kThreads>
struct StagedRun {
  static constexpr unsigned kElements = 16 / sizeof(T);
  using Vector = Pack<T, kElements>;

  /// The address of the run's first element in shared memory: misaligned by as much as in global memory.
  static __device__ T* place(unsigned char* area, const T* global) {
    return reinterpret_cast<T*>(area + reinterpret_cast<unsigned long long>(global) % 16);
  }

  static __device__ unsigned head(const T* global, unsigned count) {
    const unsigned unaligned = elements_before_alignment<16>(global);
    return unaligned < count ? unaligned : count;
  }

  static __device__ void load(T* staged, const T* global, unsigned count) {
    const unsigned first = head(global, count);
    const unsigned vectors = (count - first) / kElements;
    for (unsigned v = threadIdx.x; v < vectors; v += kThreads)
      copy_to_shared(reinterpret_cast<Vector*>(staged + first) + v,
                     reinterpret_cast<const Vector*>(global + first) + v);
    const unsigned singles = count - vectors * kElements;
    for (unsigned i = threadIdx.x; i < singles; i += kThreads) {
      const unsigned at = i < first ? i : i + vectors * kElements;
      staged[at] = global[at];
    }
  }

  static __device__ void store(T* global, const T* staged, unsigned count) {
    const unsigned first = head(global, count);
    const unsigned vectors = (count - first) / kElements;
    for (unsigned v = threadIdx.x; v < vectors; v += kThreads)
      store_streaming(reinterpret_cast<Vector*>(global + first) + v,
                      reinterpret_cast<const Vector*>(staged + first)[v]);
    const unsigned singles = count - vectors * kElements;
    for (unsigned i = threadIdx.x; i < singles; i += kThreads) {
      const unsigned at = i < first ? i : i + vectors * kElements;
      global[at] = staged[at];
    }
  }
};

template <class Types, unsigned kBlockThreads, unsigned kGroup, unsigned kLeast, unsigned kEach, unsigned kRows>
struct SoftmaxTiles {
  using In = typename Types::In;
  using Out = typename Types::Out;
  using Acc = typename Types::Acc;
  using Index = typename Types::Index;
  using State = typename Types::State;
  using Rows = SoftmaxRows<Types>;
  using InRun = StagedRun<In, kBlockThreads>;
  using OutRun = StagedRun<Out, kBlockThreads>;
  static constexpr unsigned kGroups = kBlockThreads / kGroup;
  static constexpr unsigned kTileRows = kGroups * kRows;

  /// Bytes of shared memory for a run.
  static __device__ unsigned area_bytes(unsigned columns, unsigned element_bytes) {
    return (kTileRows * columns * element_bytes + 15) / 16 * 16 + 16;
  }

  static __device__ unsigned rows_of(const Rows& all, Index first) {
    return all.rows - first < kTileRows ? static_cast<unsigned>(all.rows - first) : kTileRows;
  }

  static __device__ bool lies_dense(const Rows& all) {
    const auto columns = static_cast<long long>(all.columns);
    return all.in_pitch == columns && all.out_pitch == columns;
  }

  static __device__ const In* in_of(const Rows& all, Index row) {
    return all.in + static_cast<long long>(row) * all.in_pitch;
  }
  static __device__ Out* out_of(const Rows& all, Index row) {
    return all.out + static_cast<long long>(row) * all.out_pitch;
  }

  static __device__ void load(const Rows& all, Index first, unsigned char* area) {
    const auto columns = static_cast<unsigned>(all.columns);
    const unsigned rows = rows_of(all, first);
    In* const staged = InRun::place(area, in_of(all, first));
    if (lies_dense(all)) {
      InRun::load(staged, in_of(all, first), rows * columns);
    } else {
      for (unsigned row = threadIdx.x / kGroup; row < rows; row += kGroups)
        for (unsigned j = threadIdx.x % kGroup; j < columns; j += kGroup)
          staged[row * columns + j] = in_of(all, first + row)[j];
    }
  }

  static __device__ void store(const Rows& all, Index first, unsigned char* area) {
    const auto columns = static_cast<unsigned>(all.columns);
    const unsigned rows = rows_of(all, first);
    const Out* const staged = OutRun::place(area, out_of(all, first));
    if (lies_dense(all)) {
      OutRun::store(out_of(all, first), staged, rows * columns);
    } else {
      for (unsigned row = threadIdx.x / kGroup; row < rows; row += kGroups)
        for (unsigned j = threadIdx.x % kGroup; j < columns; j += kGroup)
          out_of(all, first + row)[j] = staged[row * columns + j];
    }
  }

  /// Calls act(k) for each k such that some lane of the group has a k-th element. Recursive, so that every index is a
  /// constant. The branch is uniform, and the first kLeast need no test.
  template <unsigned k = 0, class Act>
  static __device__ void for_elements(unsigned columns, const Act& act) {
    if constexpr (k < kEach) {
      if (k >= kLeast && k * kGroup >= columns) return;
      act(k);
      for_elements<k + 1>(columns, act);
    }
  }

  /// Computes one staged row. All lanes of the warp must call it; lanes without a row of their own compute another one
  /// and write nothing.
  static __device__ void work(const In* in, Out* out, bool is_own, unsigned columns,
                              const typename Types::Scale& scale) {
    const unsigned lane = threadIdx.x % kGroup;
    const auto is_there = [&](unsigned k) { return k < kLeast || lane + k * kGroup < columns; };
    Acc values[kEach];
    Acc heaviest = scale.neutral();
    for_elements(columns, [&](unsigned k) {
      values[k] = is_there(k) ? convert<Acc>(in[lane + k * kGroup]) : scale.neutral();
      heaviest = scale.descends() ? smaller<true>(heaviest, values[k]) : larger<true>(heaviest, values[k]);
    });
    const SoftmaxWeights<Acc> weights(heaviest, scale);
    Acc sum(0);
    for_elements(columns, [&](unsigned k) {
      const Acc weight = weights.of(values[k]);
      sum += weight;
      if constexpr (!Types::kLog) values[k] = weight;
    });
    const Acc origin = scale.oriented(heaviest);
    const State row = combine_lanes<kGroup>(State{origin, sum}, scale.magnitude());
    if (!is_own) return;
    const typename Types::Result result(row, scale);
    const Acc kept = rescaled_sum({origin, result.reciprocal}, row.largest, scale.magnitude());
    for_elements(columns, [&](unsigned k) {
      if (!is_there(k)) return;
      if constexpr (Types::kLog) out[lane + k * kGroup] = convert<Out>(result.of(values[k]));
      else out[lane + k * kGroup] = convert<Out>(values[k] * kept);
    });
  }

  static __device__ void run(const typename Rows::Arguments& arguments) {
    const Rows all(arguments);
    const auto columns = static_cast<unsigned>(all.columns);
    unsigned char* const in_area = dynamic_smem;
    unsigned char* const out_area = in_area + area_bytes(columns, sizeof(In));
    pdl_release_then_wait();
    const Index stride = static_cast<Index>(gridDim.x) * kTileRows;
    Index first = static_cast<Index>(blockIdx.x) * kTileRows;
    if (first < all.rows) load(all, first, in_area);
    for (; first < all.rows; first += stride) {
      wait_for_copies();
      __syncthreads();
      const unsigned rows = rows_of(all, first);
      const In* const in = InRun::place(in_area, in_of(all, first));
      Out* const out = OutRun::place(out_area, out_of(all, first));
      for (unsigned row = threadIdx.x / kGroup; row < kTileRows; row += kGroups) {
        const bool is_own = row < rows;
        const unsigned at = is_own ? row * columns : 0;
        work(in + at, out + at, is_own, columns, all.scale);
      }
      __syncthreads();
      if (first + stride < all.rows) load(all, first + stride, in_area);
      store(all, first, out_area);
    }
  }
};

}  // namespace hone
