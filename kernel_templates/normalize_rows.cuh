// The second half of a softmax whose rows are spread over ranks: makes shares of elements, where what they are relative
// to is known of each row.
//
//   SharesOfNorm     exp(x − n), or x − n for its logarithm; n is the logarithm of the sum of the row's exponentials
//   CanonicalShares  those of canonical_softmax_ops.cuh, from the row's largest element and the sum of its weights
//
// A grid-stride loop over tiles of kBlockThreads × kUnroll packs of one row; a thread loads all packs of its tile
// before it stores any. The elements behind the last pack of a row are handled one by one. A row is NaN as a
// whole where that of softmax.cuh is. `out` may be `in`.
//
// Constraints: every row of both arrays begins at a multiple of kWidth elements; kWidth is a power of two, and a pack
// has at most 16 bytes.
#pragma once

namespace hone {

/// As host and device see them. Pitches are in elements.
struct NormalizeArguments {
  const void* in;
  const void* norms;    ///< one of each row, in the accumulator's type: n, or the sum of weights
  const void* origins;  ///< of CanonicalShares: the largest element of each row
  void* out;
  unsigned long long rows, columns;
  unsigned long long tiles_per_row;
  long long in_pitch, out_pitch;
  double factor;  ///< of CanonicalShares: twice the scale
};

}  // namespace hone

#if defined(__CUDACC__) || defined(HONE_HOST_DEVICE)  // the host's own sources need the arguments alone

#include "canonical_softmax_ops.cuh"
#include "grid.cuh"
#include "pack.cuh"

namespace hone {

template <class In_, class Acc, class Out_, bool kLogarithm>
struct SharesOfNorm {
  using In = In_;
  using Out = Out_;
  Acc shift;

  __device__ SharesOfNorm(const NormalizeArguments& all, unsigned long long row) {
    const Acc norm = static_cast<const Acc*>(all.norms)[row];
    shift = norm == highest<Acc>() ? norm - norm : norm;  // NaN for +∞
  }
  __device__ Out operator()(In x) const {
    const Acc y = convert<Acc>(x) - shift;
    if constexpr (kLogarithm) return convert<Out>(y);
    else if constexpr (kSame<Acc, float>) return convert<Out>(expf(y));
    else return convert<Out>(exp(y));
  }
};

template <class In_, class Acc, class Out_, bool kLogarithm>
struct CanonicalShares {
  using In = In_;
  using Out = Out_;
  using Weight = SoftmaxWeight<CanonicalSoftmaxTypes<In, Out, Acc, unsigned long long, kLogarithm, 1>>;
  Weight weight;
  typename Weight::Norm norm;

  __device__ CanonicalShares(const NormalizeArguments& all, unsigned long long row)
      : weight(heaviest_of_origin(convert<Acc>(static_cast<const In*>(all.origins)[row]), static_cast<Acc>(all.factor)),
               static_cast<Acc>(all.factor)),
        norm(weight.norm(static_cast<const Acc*>(all.norms)[row])) {}
  __device__ Out operator()(In x) const { return weight.result(x, norm); }
};

template <class Shares, unsigned kWidth, unsigned kBlockThreads, unsigned kUnroll>
struct NormalizeRows {
  using In = typename Shares::In;
  using Out = typename Shares::Out;
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
      const Shares share(all, row);
      const unsigned long long first = in_row * kTile + threadIdx.x;
      InPack held[kUnroll];
      unrolled<kUnroll>([&](unsigned u) {
        const unsigned long long p = first + u * kBlockThreads;
        if (p < packs) held[u] = reinterpret_cast<const InPack*>(in)[p];
      });
      unrolled<kUnroll>([&](unsigned u) {
        const unsigned long long p = first + u * kBlockThreads;
        if (p < packs) reinterpret_cast<OutPack*>(out)[p] = OutPack::of([&](unsigned e) { return share(held[u][e]); });
      });
      const unsigned long long rest = packs * kWidth + threadIdx.x;
      if (in_row + 1 == all.tiles_per_row && rest < all.columns) out[rest] = share(in[rest]);
    }
  }
};

}  // namespace hone

#endif
