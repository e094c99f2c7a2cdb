// tuned_reduce() of a FusedReduction: several reductions of one array, which is read once.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>

#include <hone/fused_reduction.h>
#include <hone/tuned_reduce.h>

namespace hone {

/// Writes the result of reduction i over in[0 … n) to outs[i], in the type that tuned_reduce() has by default. `in` and
/// all of `outs` are memory of the session's device. The array is read once, so the call costs as much as one reduction
/// as long as the arithmetic keeps up with memory. Errors, stream behaviour and thread safety are those of
/// tuned_reduce().
Choice tuned_reduce(Session& session, const FusedReduction& reduction, DType dtype, const void* in, std::int64_t n,
                    std::span<void* const> outs, Stream stream, NanPolicy nan = NanPolicy::propagate);

/// The operations of a fused reduction, as types; see fuse().
template <ReduceOp... kOps>
struct Fused {
  static const FusedReduction& reduction() {
    static const FusedReduction fused({kOps...});
    return fused;
  }
};

/// Names operations so that types are checked at compile time: tuned_reduce(session, fuse(hone::sum, hone::max), in, n,
/// std::tuple(sum, max), stream).
template <ReduceOp... kOps>
constexpr Fused<kOps...> fuse(ReduceTag<kOps>...) {
  static_assert(sizeof...(kOps) >= 1 && sizeof...(kOps) <= FusedReduction::kMost,
                "one to eight reductions can be fused");
  static_assert(((info(kOps).inputs == 1) && ...), "dot takes two arrays and cannot be fused");
  return {};
}

template <ReduceOp... kOps, class T, class... Results>
Choice tuned_reduce(Session& session, Fused<kOps...> fused, const T* in, std::int64_t n, std::tuple<Results*...> outs,
                    Stream stream, NanPolicy nan = NanPolicy::propagate) {
  static_assert(sizeof...(kOps) == sizeof...(Results), "pass one pointer for each reduction");
  static_assert((reduce_supports(kOps, kDTypeOf<T>) && ...), "a reduction is not defined for this element type");
  static_assert(((kDTypeOf<Results> == reduce_result_dtype(kOps, kDTypeOf<T>)) && ...),
                "a fused reduction writes reduce_result_t<Tag, T>");
  return std::apply(
      [&](Results*... out) {
        void* const pointers[] = {out...};
        return tuned_reduce(session, fused.reduction(), kDTypeOf<T>, in, n, pointers, stream, nan);
      },
      outs);
}

}  // namespace hone
