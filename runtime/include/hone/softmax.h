// tuned_softmax(): the softmax, or its logarithm, of rows or columns in device memory.
#pragma once

#include <cstdint>
#include <optional>

#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

/// The elements and how they are treated.
struct SoftmaxSpec {
  DType dtype = DType::f32;            ///< f16, bf16, f32 or f64
  std::optional<DType> result = {};    ///< of those, too; empty: the elements' own
  double scale = 1;  ///< that each element is multiplied with first; finite, rounded to the accumulator

  constexpr DType result_dtype() const { return result.value_or(dtype); }
  /// f64 where elements or results are, else f32.
  constexpr DType accumulator_dtype() const {
    return dtype == DType::f64 || result_dtype() == DType::f64 ? DType::f64 : DType::f32;
  }
};

/// Which elements add up to 1. Pitches are the distances, in elements, from one row of the matrix to the next, in the
/// input and in the output; 0 means that rows lie side by side.
struct SoftmaxShape {
  Extents extents{1, 1, 1};  ///< {rows, columns, 1}, or {outer, reduced, inner}
  Pitches pitches{0, 0};
  bool over_columns = false;

  /// Each row of a matrix.
  static constexpr SoftmaxShape rows(std::int64_t rows, std::int64_t columns, Pitches pitches = {}) {
    return {{rows, columns, 1}, pitches, false};
  }
  /// Each column of a matrix.
  static constexpr SoftmaxShape columns(std::int64_t rows, std::int64_t columns, Pitches pitches = {}) {
    return axis(1, rows, columns, pitches);
  }
  /// The middle extent of outer × reduced × inner; a row is one of `inner` elements, of which there are outer ·
  /// reduced.
  static constexpr SoftmaxShape axis(std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                                     Pitches pitches = {}) {
    if (inner == 1 && pitches == Pitches{}) return rows(outer, reduced);
    return {{outer, reduced, inner}, pitches, true};
  }
  /// All n elements of an array.
  static constexpr SoftmaxShape array(std::int64_t n) { return rows(1, n); }
};

/// The built-in families: `softmax` with extents {rows, columns, 1}, `softmax_columns` with {outer, reduced, inner}.
/// Operations softmax and log_softmax; buffers {in, out}; Problem::scalars[0] is the scale, 1 where it is empty.
const KernelFamily& softmax_family();
const KernelFamily& softmax_columns_family();

/// The Problems that tuned_softmax() and tuned_log_softmax() ask for, for arrays that both are aligned to `alignment`
/// bytes.
Problem softmax_problem(const SoftmaxSpec& spec, const SoftmaxShape& shape, std::uint32_t alignment = kMaxAlignment);
Problem log_softmax_problem(const SoftmaxSpec& spec, const SoftmaxShape& shape,
                            std::uint32_t alignment = kMaxAlignment);

/// Writes exp(scale·x − max) ÷ Σ exp(scale·x − max) for each element x of a row (or column) to its place in `out`, both
/// in memory of the session's device, in the order of `stream`. `in` and `out` may be the same where elements and
/// results have the same size and pitch; otherwise they must not overlap. What lies between the rows of a pitch is left
/// alone.
///
/// Any extent may be 0 (nothing is written) and products may go beyond 2^32. Pointers need the alignment of their
/// elements only. A row with a NaN, or with +∞ among scale·x, or with nothing but −∞, becomes NaN altogether, as in
/// PyTorch; beside finite elements −∞ becomes 0. A scale of 0 counts as one that is too small to tell finite elements
/// apart. Nothing overflows on the way. Results below the smallest normal number of the accumulator may become 0. The
/// same bits from run to run for one winner and one alignment. Neither waits nor allocates on `stream`. Thread-safe.
///
/// Throws Error: invalid_argument for a null or misaligned pointer, arrays that overlap, a negative extent, a product
/// of extents that overflows, a pitch below the row's length, a scale that is not finite, and types that do not go
/// together; otherwise as Session::launch.
Choice tuned_softmax(Session& session, const SoftmaxSpec& spec, const void* in, const SoftmaxShape& shape, void* out,
                     Stream stream);

/// scale·x − max − log Σ exp(scale·x − max), likewise, and accurate where that is far below 0: −∞ beside finite
/// elements stays −∞.
Choice tuned_log_softmax(Session& session, const SoftmaxSpec& spec, const void* in, const SoftmaxShape& shape,
                         void* out, Stream stream);

/// The same, with the dtypes from the pointers.
template <class T, class Result>
Choice tuned_softmax(Session& session, const T* in, const SoftmaxShape& shape, Result* out, Stream stream,
                     double scale = 1) {
  return tuned_softmax(session, {.dtype = kDTypeOf<T>, .result = kDTypeOf<Result>, .scale = scale}, in, shape, out,
                       stream);
}
template <class T, class Result>
Choice tuned_log_softmax(Session& session, const T* in, const SoftmaxShape& shape, Result* out, Stream stream,
                         double scale = 1) {
  return tuned_log_softmax(session, {.dtype = kDTypeOf<T>, .result = kDTypeOf<Result>, .scale = scale}, in, shape, out,
                           stream);
}

}  // namespace hone
