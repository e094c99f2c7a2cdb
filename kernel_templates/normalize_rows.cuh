// The second half of a softmax whose rows are spread over ranks: exp(x − n), or x − n for its logarithm, where n, the
// logarithm of the sum of all exponentials of a row, is known.
//
// A grid-stride loop over tiles of kBlockThreads × kUnroll packs of one row; a thread loads all packs of its tile
// before it stores any. The elements behind the last pack of a row are handled one by one. A row is NaN as a whole if n
// is NaN or ±∞, as that of softmax.cuh is. `out` may be `in`.
//
// Constraints: every row of both arrays begins at a multiple of kWidth elements; kWidth is a power of two, and a pack
// has at most 16 bytes.
#pragma once

namespace hone {

/// As host and device see them. Pitches are in elements.
struct NormalizeArguments {
  const void* in;
  const void* norms;  ///< one of each row, in the accumulator's type
  void* out;
  unsigned long long rows, columns;
  unsigned long long tiles_per_row;
  long long in_pitch, out_pitch;
};

}  // namespace hone

#if defined(__CUDACC__) || defined(HONE_HOST_DEVICE)  // the host's own sources need the arguments alone

#include "grid.cuh"
#include "pack.cuh"

namespace hone {

template <class In, class Acc, class Out, bool kLogarithm, unsigned kWidth, unsigned kBlockThreads, unsigned kUnroll>
struct NormalizeRows {
  static constexpr unsigned long long kTile = kBlockThreads * kUnroll;
  using InPack = Pack<In, kWidth>;
  using OutPack = Pack<Out, kWidth>;

  static __device__ void run(const NormalizeArguments& all) {
    pdl_release_then_wait();
    const unsigned long long packs = all.columns / kWidth;
    for (unsigned long long tile = blockIdx.x; tile < all.rows * all.tiles_per_row; tile += gridDim.x) {
      const unsigned long long row = tile / all.tiles_per_row;
      const unsigned long long in_row = tile - row * all.tiles_per_row;
      const In* const in = static_cast<const In*>(all.in) + static_cast<long long>(row) * all.in_pitch;
      Out* const out = static_cast<Out*>(all.out) + static_cast<long long>(row) * all.out_pitch;
      const Acc norm = static_cast<const Acc*>(all.norms)[row];
      const Acc shift = norm == highest<Acc>() ? norm - norm : norm;  // NaN for +∞
      const unsigned long long first = in_row * kTile + threadIdx.x;
      InPack held[kUnroll];
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u)
        if (first + u * kBlockThreads < packs)
          held[u] = reinterpret_cast<const InPack*>(in)[first + u * kBlockThreads];
#pragma unroll
      for (unsigned u = 0; u < kUnroll; ++u) {
        if (first + u * kBlockThreads >= packs) continue;
        OutPack made;
#pragma unroll
        for (unsigned e = 0; e < kWidth; ++e) made.set(e, value(held[u][e], shift));
        reinterpret_cast<OutPack*>(out)[first + u * kBlockThreads] = made;
      }
      const unsigned long long rest = packs * kWidth + threadIdx.x;
      if (in_row + 1 == all.tiles_per_row && rest < all.columns) out[rest] = value(in[rest], shift);
    }
  }

 private:
  static __device__ Out value(In x, Acc shift) {
    const Acc y = convert<Acc>(x) - shift;
    if constexpr (kLogarithm) return convert<Out>(y);
    else if constexpr (kSame<Acc, float>) return convert<Out>(expf(y));
    else return convert<Out>(exp(y));
  }
};

}  // namespace hone

#endif
