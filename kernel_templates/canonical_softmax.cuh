// Softmax, or its logarithm, of rows with the same bits for every policy, number of rows, pitch, alignment and device.
//
// The largest element of a row, the smallest if the scale is negative, depends on no order. The weights relative to it
// are exponentials of IEEE operations alone (canonical_exponentials.cuh), and their sum is the canonical tree over the
// row's elements. Three ways, by the length of a row:
//
//   CanonicalSoftmaxLanes   kLanes neighbouring lanes hold a row of at most a chunk in registers, kUnroll packs each.
//   CanonicalSoftmaxBlock   the warps of a block hold a row in registers, kChunks chunks each.
//   CanonicalSoftmaxRows    (canonical_softmax_rows.cuh) rows of any length are read three times.
//
// May be in place. Constraints: kBlockThreads is a power of two; rows begin at multiples of kPack elements in both
// arrays, and are no longer than what is held.
#pragma once

#include "canonical_block.cuh"
#include "canonical_softmax_ops.cuh"

namespace hone {

/// What a lane holds of a chunk, or of a shorter row: packs u < kUnroll of kLanes lanes, the first of which is `first`.
template <class Types, unsigned kLanes, unsigned kUnroll>
struct HeldChunk {
  using Acc = typename Types::Acc;
  using InPack = typename Types::InPack;
  using OutPack = typename Types::OutPack;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kPack = Types::kPack;

  Acc kept[kUnroll][kPack];  ///< elements, then their weights, or their exponents for the logarithm

  /// The number of the first element of pack u; `columns` from the beginning of the chunk on are there.
  static __device__ unsigned number(unsigned u) { return (u * kLanes + threadIdx.x % kLanes) * kPack; }

  __device__ void load(const typename Types::In* chunk, unsigned columns) {
    InPack packs[kUnroll];
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      if (number(u) + kPack <= columns) packs[u] = *reinterpret_cast<const InPack*>(chunk + number(u));
      else packs[u] = singles(chunk, number(u), columns);
    }
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u)
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e) kept[u][e] = convert<Acc>(packs[u][e]);
  }

  __device__ Acc heaviest(unsigned columns, Acc factor) const {
    Acc most = lowest<Acc>();
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u)
#pragma unroll
      for (unsigned e = 0; e < kPack; ++e)
        if (number(u) + e < columns) most = larger<false>(most, factor < Acc(0) ? -kept[u][e] : kept[u][e]);
    return most;
  }

  /// The leaves of the tree, folded as far as they are in one lane.
  __device__ void weigh(Acc (&values)[kPack], unsigned columns, const Weight& weight) {
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e)
      values[e] = fold_leaves<CanonicalSum<Acc>, kUnroll>([&](unsigned u) {
        const Acc exponent = weight.exponent(kept[u][e]), leaf = canonical_exponential(exponent);
        kept[u][e] = Types::kLog ? exponent : leaf;
        return number(u) + e < columns ? leaf : -Acc(0);
      });
  }

  __device__ void store(typename Types::Out* chunk, unsigned columns, const Weight& weight, Acc divisor) const {
#pragma unroll
    for (unsigned u = 0; u < kUnroll; ++u) {
      const OutPack pack = OutPack::of([&](unsigned e) { return weight.of_kept(kept[u][e], divisor); });
      if (number(u) + kPack <= columns) {
        *reinterpret_cast<OutPack*>(chunk + number(u)) = pack;
      } else {
#pragma unroll
        for (unsigned e = 0; e < kPack; ++e)
          if (number(u) + e < columns) chunk[number(u) + e] = pack[e];
      }
    }
  }

 private:
  static __device__ InPack singles(const typename Types::In* chunk, unsigned first, unsigned columns) {
    InPack pack = InPack::filled(typename Types::In{});
#pragma unroll
    for (unsigned e = 0; e < kPack; ++e)
      if (first + e < columns) pack.set(e, chunk[first + e]);
    return pack;
  }
};

/// The grid-stride loop is over tiles of as many rows as a block has groups of lanes.
template <class Types, unsigned kBlockThreads, unsigned kLanes, unsigned kUnroll>
struct CanonicalSoftmaxLanes {
  using Acc = typename Types::Acc;
  static constexpr unsigned kGroups = kBlockThreads / kLanes, kMostColumns = kLanes * kUnroll * Types::kPack;
  static_assert(kLanes <= kWarpThreads && kMostColumns <= kChunkElements<typename Types::In>);

  static __device__ void run(const typename Types::Arguments& all) {
    pdl_release_then_wait();
    for (unsigned long long tile = blockIdx.x; tile * kGroups < all.rows; tile += gridDim.x) {
      const unsigned long long row = tile * kGroups + threadIdx.x / kLanes;
      const unsigned columns = row < all.rows ? static_cast<unsigned>(all.columns) : 0;
      HeldChunk<Types, kLanes, kUnroll> held;
      held.load(softmax_input<Types>(all, row), columns);
      Acc heaviest = held.heaviest(columns, all.scale.factor);
#pragma unroll
      for (unsigned mask = 1; mask < kLanes; mask *= 2)
        heaviest = larger<false>(heaviest, shuffle_xor(heaviest, mask));
      const SoftmaxWeight<Types> weight(heaviest, all.scale.factor);
      Acc values[Types::kPack];
      held.weigh(values, columns, weight);
      const Acc sum = fold_lanes<CanonicalSum<Acc>, Types::kPack, 1, kLanes>(values);
      held.store(softmax_output<Types>(all, row), columns, weight, weight.divisor(sum));
    }
  }
};

template <class Types, unsigned kBlockThreads, unsigned kChunks>
struct CanonicalSoftmaxBlock {
  using Acc = typename Types::Acc;
  using In = typename Types::In;
  using Weight = SoftmaxWeight<Types>;
  static constexpr unsigned kElements = kChunkElements<In>;
  using Held = HeldChunk<Types, kWarpThreads, kElements / (kWarpThreads * Types::kPack)>;
  static constexpr unsigned kMostColumns = kBlockThreads / kWarpThreads * kChunks * kElements;

  static __device__ void run(const typename Types::Arguments& all) {
    pdl_release_then_wait();
    const auto columns = static_cast<unsigned>(all.columns);
    const unsigned first = threadIdx.x / kWarpThreads * kChunks * kElements;  // of the warp
    const auto columns_of = [&](unsigned k) {
      const unsigned begin = first + k * kElements, left = columns < begin ? 0 : columns - begin;
      return left < kElements ? left : kElements;
    };
    for (unsigned long long row = blockIdx.x; row < all.rows; row += gridDim.x) {
      Held held[kChunks];
      Acc heaviest = lowest<Acc>();
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k)
        held[k].load(softmax_input<Types>(all, row) + first + k * kElements, columns_of(k));
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k)
        heaviest = larger<false>(heaviest, held[k].heaviest(columns_of(k), all.scale.factor));
      heaviest = CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kWarpThreads>(heaviest);
      heaviest = CanonicalBlock<HeaviestElement<Types>, kBlockThreads>::all_of_warps(heaviest, 0);
      const Weight weight(heaviest, all.scale.factor);
      Acc values[kChunks][Types::kPack];
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k) held[k].weigh(values[k], columns_of(k), weight);
      Acc flat[kChunks * Types::kPack];
      memcpy(flat, values, sizeof(flat));
      const Acc of_warp = fold_lanes<CanonicalSum<Acc>, Types::kPack, kChunks>(flat);
      const Acc divisor = weight.divisor(CanonicalBlock<Weight, kBlockThreads>::all_of_warps(of_warp, 0));
#pragma unroll
      for (unsigned k = 0; k < kChunks; ++k)
        held[k].store(softmax_output<Types>(all, row) + first + k * kElements, columns_of(k), weight, divisor);
    }
  }
};

}  // namespace hone
