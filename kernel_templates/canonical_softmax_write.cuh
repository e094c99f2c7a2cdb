// Rows of canonical_softmax.cuh that are held: how they become results, with one exchange between their threads.
//
// Weights relative to 1 are those of most rows. They are summed while the heaviest element is looked for, and both meet
// at once. Rows of other weights are read and summed again.
//
// A Row is a group of lanes' part of a row, in registers or in shared memory. It is made of a Place, which says where
// it is and how it is scaled. It has load(in, powers), which turns the elements as the powers want them; sum(powers) of
// the lanes' weights, and heaviest(), the largest that they loaded; and store(in, out, weight, norm). Row::Again is a
// Row of the same Place for other weights. kIsApart: its code is a call, because it would need up to twice the
// registers if it were a part of the kernel's.
#pragma once

#include "canonical_softmax_ops.cuh"
#include "combine.cuh"

namespace hone {

/// The sum of the weights that threads have of a row, and their heaviest element: what a row's threads exchange at
/// once.
template <class Types>
struct SoftmaxSum {
  using Acc = typename Types::Acc;
  struct alignas(2 * sizeof(Acc)) State {
    Acc sum;  ///< of weights
    Acc heaviest;
  };
  static __device__ State absent() { return {-Acc(0), HeaviestElement<Types>::absent()}; }
  static __device__ State combine(State a, State b) {
    return {rounded_sum(a.sum, b.sum), HeaviestElement<Types>::combine(a.heaviest, b.heaviest)};
  }
  static __device__ State in_warp(State state) {
    return {CanonicalCombine<CanonicalSum<Acc>>::template in_all_lanes<kWarpThreads>(state.sum),
            CanonicalCombine<HeaviestElement<Types>>::template in_all_lanes<kWarpThreads>(state.heaviest)};
  }
};

/// Makes the State of a row of those of its groups of lanes. Some of its warps and blocks may not be launched.
template <class Types, unsigned kThreads, unsigned kClusterBlocks, Exchange kExchange>
using CombineSoftmax = Combine<CanonicalCombine<SoftmaxSum<Types>>, kThreads, kClusterBlocks, Grid::none, true,
                               Tail::warp, kExchange, true>;

/// Writes the results of a row whose weights have other powers, those of its heaviest element.
template <class Row, class CombineRow>
__device__ void write_again(Row& row, const typename Row::In* in, typename Row::Out* out, typename Row::Acc heaviest,
                            CombineRow& combine) {
  const SoftmaxWeight<typename Row::Types> weight(heaviest, row.place.factor);
  row.load(in, weight.powers);
  row.store(in, out, weight, weight.norm(combine.to_all_of_lanes({row.sum(weight.powers), heaviest}).sum));
}
template <class Row, class CombineRow>
__device__ __noinline__ CombineRow write_again_apart(typename Row::Place place, const typename Row::In* in,
                                                     typename Row::Out* out, typename Row::Acc heaviest,
                                                     CombineRow combine) {
  Row row{place};
  write_again(row, in, out, heaviest, combine);
  return combine;
}

/// Writes the results of a Row that has loaded `in`, with the same powers. All lanes of the warp call it.
template <class Row, class CombineRow>
__device__ void write_row(Row& row, const typename Row::In* in, typename Row::Out* out, CombineRow& combine,
                          const typename Row::Types::GuessedPowers& guessed) {
  using Again = typename Row::Again;
  const auto heaviest = row.heaviest();  // first, so that packs need registers no longer than until they are weighed
  const auto state = combine.to_all_of_lanes({row.sum(guessed), heaviest});
  if (!__any_sync(kFullMask, !guessed.are_of(state.heaviest))) {
    const SoftmaxWeight<typename Row::Types, typename Row::Types::GuessedPowers> weight(guessed, state.heaviest);
    row.store(in, out, weight, weight.template norm<true>(state.sum));
  } else if constexpr (Again::kIsApart) {
    combine = write_again_apart<Again>(row.place, in, out, state.heaviest, combine);
  } else {
    write_again(row, in, out, state.heaviest, combine);
  }
}

}  // namespace hone
