// Rows of canonical_softmax.cuh that are held: how they become results, with one exchange between their threads.
//
// Weights relative to 1 are those of most rows. They are summed while the heaviest element is looked for, and both meet
// at once. Rows of other weights are read and summed again.
//
// A Row is a group of lanes' part of a row, in registers or in shared memory. It is made of a Place, which says where it
// is and how it is scaled, and has load(in, powers); state(powers), which weighs what was loaded and returns the State of
// the lanes; and store(in, out, weight, norm). kIsApart: its code for other weights is a call, because it would need up
// to twice the registers if it were a part of the kernel's.
#pragma once

#include "canonical_softmax_ops.cuh"
#include "combine.cuh"

namespace hone {

/// What the threads of a row find of it.
template <class Types>
struct SoftmaxSum {
  using Acc = typename Types::Acc;
  struct State {
    Acc sum;  ///< of weights
    Acc heaviest;
  };
  static __device__ State absent() { return {-Acc(0), HeaviestElement<Types>::absent()}; }
  static __device__ State combine(State a, State b) {
    return {rounded_sum(a.sum, b.sum), HeaviestElement<Types>::combine(a.heaviest, b.heaviest)};
  }
};

/// Makes the State of a row of those of its groups of lanes.
template <class Types, unsigned kThreads, unsigned kClusterBlocks, Exchange kExchange>
using CombineSoftmax = Combine<CanonicalCombine<SoftmaxSum<Types>>, kThreads, kClusterBlocks, Grid::none, true,
                               Tail::warp, kExchange>;

/// Writes the results of a row whose weights have other powers, those of its heaviest element.
template <class Row, class CombineRow>
__device__ void write_again(Row& row, const typename Row::In* in, typename Row::Out* out, typename Row::Acc heaviest,
                            CombineRow& combine) {
  const typename Row::Weight weight(heaviest, row.place.factor);
  row.load(in, weight.powers);
  row.store(in, out, weight, weight.norm(combine.to_all_of_lanes(row.state(weight.powers)).sum));
}
template <class Row, class CombineRow>
__device__ __noinline__ CombineRow write_again_apart(typename Row::Place place, const typename Row::In* in,
                                                     typename Row::Out* out, typename Row::Acc heaviest,
                                                     CombineRow combine) {
  Row row{place};
  write_again(row, in, out, heaviest, combine);
  return combine;
}

/// Writes the results of a Row that has loaded `in`, where weights are relative to 1. All lanes of the warp call it.
template <class Row, class CombineRow>
__device__ void write_row(Row& row, const typename Row::In* in, typename Row::Out* out, CombineRow& combine) {
  const Powers<typename Row::Acc> relative_to_1(row.place.factor);
  const auto state = combine.to_all_of_lanes(row.state(relative_to_1));
  const typename Row::Weight weight(state.heaviest, row.place.factor);
  const bool is_guessed = !__any_sync(kFullMask, !weight.is_guessed());
  if (is_guessed) row.store(in, out, weight, weight.norm(state.sum));
  else if constexpr (Row::kIsApart) combine = write_again_apart<Row>(row.place, in, out, state.heaviest, combine);
  else write_again(row, in, out, state.heaviest, combine);
}

}  // namespace hone
