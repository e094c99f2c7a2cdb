// logsumexp in the canonical tree: sums of exponentials, which are relative to the largest element of a chunk where
// that is far from 0, and to 1 elsewhere, so that sums of most chunks are combined by additions.
#pragma once

#include "canonical_exponentials.cuh"
#include "canonical_ops.cuh"
#include "logsumexp.cuh"

namespace hone {

/// A State's sum is relative to origin() of its largest element, the reference.
template <class In_, class Acc, class Index_, bool kIgnoreNan>
struct Canonical<LogSumExp<In_, Acc, Index_, kIgnoreNan>> : CanonicalByChunk<Acc, kIgnoreNan> {
  using In = In_;
  using Index = Index_;
  using State = ScaledSum<Acc>;
  static constexpr bool kFoldsOnce = true;  ///< most chunks that are not held

  static __device__ State absent() { return {lowest<Acc>(), -Acc(0)}; }
  static __device__ State combine(State a, State b) {
    const Acc most = larger<false>(a.reference, b.reference);
    if (origin(a.reference) == origin(b.reference)) return {most, rounded_sum(a.sum, b.sum)};
    return {most, rounded_sum(relative_to(origin(most), a), relative_to(origin(most), b))};
  }

  template <class Group>
  static __device__ void of_chunk(const Group& group, State (&states)[Group::kStates], const auto&... done) {
    constexpr unsigned kStates = Group::kStates;
    Acc most[kStates], sum[kStates], from[kStates];
    bool is_summed = false;
    if constexpr (Group::kIsHeld)
      group.template fold<CanonicalMax<Acc>>(
          most, [&](Optional<Acc> x, unsigned, unsigned) { return x.is_there ? x.value : lowest<Acc>(); });
    else is_summed = fold_once(group, most, sum);
#pragma unroll
    for (unsigned s = 0; s < kStates; ++s) from[s] = origin(most[s]);
    if (!is_summed)
      group.template fold<CanonicalSum<Acc>>(
          sum, [&](Optional<Acc> x, unsigned s, unsigned) { return weight(x, from[s]); }, done...);
#pragma unroll
    for (unsigned s = 0; s < kStates; ++s) states[s] = {most[s], is_nan(most[s]) ? most[s] : sum[s]};
  }

  /// Relative to the largest element, the sum of that alone is 1 and its logarithm 0.
  template <class Out>
  static __device__ void write(State root, Index, Out* out) {
    const Acc most = root.reference, of_most = near_exponential(most - origin(most));
    const bool is_infinite = most == highest<Acc>() || most == lowest<Acc>();
    write_canonical(is_infinite ? most : rounded_sum(most, logarithm_of_normal(quotient(root.sum, of_most))), out);
  }

 private:
  /// Finds the largest elements and the sums relative to 1, where each fold reads the elements. False, in all threads,
  /// if some chunk has another origin. If its elements are all −∞, it has the same sum nevertheless, of the least
  /// exponentials, and if one is NaN, it has none.
  template <class Group>
  static __device__ bool fold_once(const Group& group, Acc (&most)[Group::kStates], Acc (&sum)[Group::kStates]) {
#pragma unroll
    for (unsigned s = 0; s < Group::kStates; ++s) most[s] = lowest<Acc>();
    group.template fold<CanonicalSum<Acc>>(sum, [&](Optional<Acc> x, unsigned s, unsigned) {
      most[s] = larger<false>(most[s], x.is_there ? x.value : lowest<Acc>());
      return weight(x, Acc(0));
    });
    group.template combine_threads<CanonicalMax<Acc>>(most);
    bool is_elsewhere = false;
#pragma unroll
    for (unsigned s = 0; s < Group::kStates; ++s)
      is_elsewhere |= origin(most[s]) != Acc(0) && origin(most[s]) > lowest<Acc>();
    return !group.any(is_elsewhere);
  }

  /// Selected, since a branch takes longer than the exponential of what is not there.
  static __device__ Acc weight(Optional<Acc> x, Acc from) {
    const Acc exponential = near_exponential(x.value - from);
    return x.is_there ? exponential : -Acc(0);
  }
  static __device__ Acc origin(Acc most) { return fabs(most) <= CanonicalMath<Acc>::kMostNear ? Acc(0) : most; }
  static __device__ Acc relative_to(Acc to, State state) {
    const Acc from = origin(state.reference);
    return rounded_product(state.sum, canonical_exponential(from == to ? Acc(0) : from - to));
  }
};

}  // namespace hone
