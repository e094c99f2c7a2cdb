// FusedReduction: several reductions of one array, which is read once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <tuple>

#include <hone/tuned_reduce.h>

namespace hone {

/// A list of reductions to make in one pass. Cheap to copy; equal lists share one KernelFamily ("reduce_fused"), which
/// lives as long as the process. Thread-safe.
class FusedReduction {
 public:
  static constexpr std::size_t kMost = 8;

  /// Throws Error(invalid_argument) that names what cannot be fused: no operation at all, more than kMost, one that is
  /// listed twice, and dot, which takes another array.
  explicit FusedReduction(std::span<const ReduceOp> ops);
  FusedReduction(std::initializer_list<ReduceOp> ops) : FusedReduction(std::span(ops.begin(), ops.size())) {}

  std::span<const ReduceOp> ops() const;

  /// Extents {n, 1, 1}, buffers {in[n], then one for each operation, of info(op).outputs values of
  /// reduce_result_dtype(op, dtype)}.
  Problem problem(DType dtype, std::int64_t n, std::uint32_t alignment = kMaxAlignment,
                  NanPolicy nan = NanPolicy::propagate) const;

 private:
  const class FusedFamily* family_;
};

/// Writes reduction number i of in[0 … n) to outs[i], each as tuned_reduce() would with default types; the same errors,
/// stream behaviour and thread safety. The array is read once, which is what the call costs as long as the arithmetic
/// keeps up with memory.
Choice tuned_reduce(Session& session, const FusedReduction& reduction, DType dtype, const void* in, std::int64_t n,
                    std::span<void* const> outs, Stream stream, NanPolicy nan = NanPolicy::propagate);

/// The operations of a fused reduction as types; see fuse().
template <ReduceOp... kOps>
struct Fused {
  static const FusedReduction& reduction() {
    static const FusedReduction fused({kOps...});
    return fused;
  }
};

/// For checks at compile time: tuned_reduce(session, fuse(hone::sum, hone::max), in, n, std::tuple(sum, max), stream).
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
