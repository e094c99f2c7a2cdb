// Mean and variance in the canonical tree: deviations within chunks, which combine by the formulae of Chan, Golub and
// LeVeque (moment_ops.cuh).
#pragma once

#include "canonical_ops.cuh"
#include "moment_ops.cuh"

namespace hone {

/// mean_about_pivot() without contractions.
template <class Acc>
__device__ Acc canonical_mean(Acc pivot, Acc sum, Acc count) {
  const Acc product = rounded_product(pivot, count);
  const Acc total = rounded_sum(product, sum);
  const Acc of_product = total - sum;
  const Acc lost = rounded_sum(fma(pivot, count, -product),
                               rounded_sum(product - of_product, sum - (total - of_product)));
  const Acc quotient = total / count;
  const Acc rest = rounded_sum(fma(-quotient, count, total), lost);
  return is_nan(rest) ? quotient : rounded_sum(quotient, rest / count);
}

template <class In_, class Acc, class Index_, bool kIgnoreNan>
struct Canonical<FloatingMoments<In_, Acc, Index_, kIgnoreNan>> : CanonicalByChunk<Acc, kIgnoreNan> {
  using In = In_;
  using Index = Index_;
  using State = Moments<Acc, Index>;

  static __device__ State of_moments(Index count, Acc pivot, Acc sum, Acc squares) {
    return {Words<Index>(count), Words<Acc>(pivot), Words<Acc>(sum), Words<Acc>(squares)};
  }
  static __device__ State absent() { return of_moments(0, Acc(0), Acc(0), Acc(0)); }

  static __device__ State combine(State a, State b) {
    const Index of_a = a.count.value(), of_b = b.count.value();
    if (of_a == 0) return b;
    if (of_b == 0) return a;
    const Acc count_a = static_cast<Acc>(of_a), count_b = static_cast<Acc>(of_b);
    const Acc mean_a = a.sum.value() / count_a, mean_b = b.sum.value() / count_b;
    const Acc between = b.pivot.value() - a.pivot.value();
    const Acc apart = rounded_sum(between, mean_b - mean_a);
    const Acc weight = rounded_product(count_a, count_b / rounded_sum(count_a, count_b));
    const bool keeps_a = fabs(mean_a) <= fabs(mean_b);
    const Acc moved = keeps_a ? rounded_product(between, count_b) : rounded_product(-between, count_a);
    return of_moments(of_a + of_b, keeps_a ? a.pivot.value() : b.pivot.value(),
                      rounded_sum(rounded_sum(a.sum.value(), b.sum.value()), moved),
                      rounded_sum(rounded_sum(a.squares.value(), b.squares.value()),
                                  rounded_product(rounded_product(apart, apart), weight)));
  }

  template <class Group>
  static __device__ void of_chunk(const Group& group, State (&states)[Group::kStates], const auto&... done) {
    constexpr unsigned kStates = Group::kStates;
    FirstElement<Acc> firsts[kStates];
    if constexpr (Group::kKnowsFirst && !kIgnoreNan) {
#pragma unroll
      for (unsigned s = 0; s < kStates; ++s) firsts[s] = {0, group.count(s), convert<Acc>(group.first(s))};
    } else {
      group.template fold<CanonicalFirst<Acc>>(firsts, [&](Optional<Acc> x, unsigned, unsigned number) {
        return FirstElement<Acc>::of(x, number);
      });
    }
    constexpr Acc kMost = kSame<Acc, float> ? Acc(0x1p86) : Acc(0x1p982);
    Acc pivot[kStates], mean[kStates], sum[kStates], squares[kStates];
#pragma unroll
    for (unsigned s = 0; s < kStates; ++s) pivot[s] = fabs(firsts[s].value) <= kMost ? firsts[s].value : Acc(0);
    group.template fold<CanonicalSum<Acc>>(sum, [&](Optional<Acc> x, unsigned s, unsigned) {
      return x.is_there ? x.value - pivot[s] : -Acc(0);
    });
#pragma unroll
    for (unsigned s = 0; s < kStates; ++s) mean[s] = sum[s] / static_cast<Acc>(firsts[s].count);
    group.template fold<CanonicalSum<Acc>>(squares, [&](Optional<Acc> x, unsigned s, unsigned) {
      const Acc deviation = (x.value - pivot[s]) - mean[s];
      return x.is_there ? rounded_product(deviation, deviation) : -Acc(0);
    }, done...);
#pragma unroll
    for (unsigned s = 0; s < kStates; ++s)
      states[s] = firsts[s].count == 0 ? absent() : of_moments(firsts[s].count, pivot[s], sum[s], squares[s]);
  }

  template <class Out>
  static __device__ void write(State root, Index, Out* out) {
    const Acc count = static_cast<Acc>(root.count.value());
    write_canonical(canonical_mean(root.pivot.value(), root.sum.value(), count), out);
    write_canonical(root.squares.value() / count, out + 1);
  }
};

}  // namespace hone
