// Copies rows of elements; both sides may have a pitch.
//
// A grid-stride loop over tiles of kBlockThreads × kUnroll packs of kVectorBytes. Each thread loads all packs of its
// tile before it stores any, so kUnroll vectorized loads are in flight. With several rows each is divided into windows:
// packs at multiples of kVectorBytes in the output. So rows at any element-aligned address run at the full vector width
// if input and output have the same address modulo kVectorBytes.
//
// Constraints: kVectorBytes is a power of two that divides the distance of each row from its copy, and the address of a
// single row; Index holds the number of packs plus one grid-wide stride, and the elements of a row plus two packs.
#pragma once

#include "copy_arguments.h"
#include "grid.cuh"

namespace hone {

template <class T, unsigned kVectorBytes, unsigned kBlockThreads, unsigned kUnroll, bool kStreaming, class Index>
struct Copy {
  static constexpr unsigned kWidth = kVectorBytes / sizeof(T);
  static constexpr unsigned kTilePacks = kBlockThreads * kUnroll;
  static_assert(kVectorBytes % sizeof(T) == 0 && kVectorBytes <= 16);
  static_assert(!kStreaming || kVectorBytes == 16);

  using Vector = ElementPack<T, kWidth>;

  static __device__ Vector load(const T* from) {
    const auto* const pack = reinterpret_cast<const Vector*>(from);
    return kStreaming ? load_streaming(pack) : *pack;
  }
  static __device__ void store(T* to, Vector vector) {
    auto* const pack = reinterpret_cast<Vector*>(to);
    if constexpr (kStreaming) store_streaming(pack, vector);
    else *pack = vector;
  }

  /// A thread's first pack of the grid-stride loop over tiles, and the distance to its next tile.
  static __device__ Index first_of_thread() { return static_cast<Index>(blockIdx.x) * kTilePacks + threadIdx.x; }
  static __device__ Index stride() { return static_cast<Index>(gridDim.x) * kTilePacks; }

  /// Copies one row of n elements. The tail behind the last pack is copied by block 0, one element per thread.
  static __device__ void copy_row(const CopyArguments& arguments) {
    const T* const in = static_cast<const T*>(arguments.in);
    T* const out = static_cast<T*>(arguments.out);
    const auto n = static_cast<Index>(arguments.columns);
    pdl_release_then_wait();
    const Index packs = n / kWidth;
    Index first = first_of_thread();
    for (; first + (kUnroll - 1) * kBlockThreads < packs; first += stride()) {
      const Array<Vector, kUnroll> held([&](unsigned u) { return load(in + (first + u * kBlockThreads) * kWidth); });
      unrolled<kUnroll>([&](unsigned u) { store(out + (first + u * kBlockThreads) * kWidth, held.values[u]); });
    }
    for (unsigned u = 0; u < kUnroll && first < packs; ++u, first += kBlockThreads)
      store(out + first * kWidth, load(in + first * kWidth));

    const Index i = packs * kWidth + threadIdx.x;
    if (blockIdx.x == 0 && i < n) out[i] = in[i];
  }

  /// A window of a row: elements [begin, end) of the pack at `to` belong to the row.
  struct Window {
    const T* from;
    T* to;
    unsigned begin = 0, end = 0;

    __device__ bool is_full() const { return end - begin == kWidth; }
  };

  static __device__ Window window_at(const CopyArguments& all, Index row, Index in_row) {
    const auto columns = static_cast<Index>(all.columns);
    T* const row_out = static_cast<T*>(all.out) + static_cast<long long>(row) * all.out_pitch;
    const unsigned skipped = elements_behind_alignment<kVectorBytes>(row_out);  // in the first window
    const Index position = in_row * kWidth;
    if (position >= columns + skipped) return {};  // only rows with another alignment have this window
    const long long offset = static_cast<long long>(position) - skipped;
    return {.from = static_cast<const T*>(all.in) + (static_cast<long long>(row) * all.in_pitch + offset),
            .to = row_out + offset,
            .begin = in_row == 0 ? skipped : 0,
            .end = at_most(columns + skipped - position, kWidth)};
  }

  static __device__ void copy_rows(const CopyArguments& all) {
    pdl_release_then_wait();
    const auto windows = static_cast<Index>(all.windows);
    const Index total = static_cast<Index>(all.rows) * windows;
    for (Index first = first_of_thread(); first < total; first += stride()) {
      Window window[kUnroll];
      Vector held[kUnroll];
      unrolled<kUnroll>([&](unsigned u) {
        const Index index = first + u * kBlockThreads;
        if (index >= total) return;
        const Index row = index / windows;
        window[u] = window_at(all, row, index - row * windows);
        if (window[u].is_full()) held[u] = load(window[u].from);
      });
      unrolled<kUnroll>([&](unsigned u) {
        if (window[u].is_full()) {
          store(window[u].to, held[u]);
        } else {
#pragma unroll 1
          for (unsigned e = window[u].begin; e < window[u].end; ++e) window[u].to[e] = window[u].from[e];
        }
      });
    }
  }
};

}  // namespace hone
