// SoftmaxSpec and SoftmaxShape: a softmax, described so that a Session can tune, prepare or launch it.
#pragma once

#include <cstdint>
#include <optional>

#include <hone/problem.h>

namespace hone {

/// The dtypes, the scale and the numerics of a softmax. Plain data.
struct SoftmaxSpec {
  DType dtype = DType::f32;            ///< f16, bf16, f32 or f64
  std::optional<DType> result = {};    ///< f16, bf16, f32 or f64; empty: `dtype`
  /// Multiplies each element first, rounded to the accumulator. Its magnitude is below 2^126, or 2^1022 where the
  /// accumulator is f64.
  double scale = 1;
  Numerics numerics = Numerics::fast;

  constexpr DType result_dtype() const { return result.value_or(dtype); }
  /// f64 if elements or results are f64, else f32.
  constexpr DType accumulator_dtype() const {
    return dtype == DType::f64 || result_dtype() == DType::f64 ? DType::f64 : DType::f32;
  }
};

/// The extents of a row-major array, and the one over which results add up to 1. Pitches are the leading dimensions of
/// input and output, in elements from one row to the next; 0 means rows without gaps.
struct SoftmaxShape {
  Extents extents{1, 1, 1};  ///< {rows, columns, 1}, or {outer, reduced, inner}
  Pitches pitches{0, 0};
  bool over_columns = false;

  /// The softmax of each row of a matrix.
  static constexpr SoftmaxShape rows(std::int64_t rows, std::int64_t columns, Pitches pitches = {}) {
    return {{rows, columns, 1}, pitches, false};
  }
  /// The softmax of each column of a matrix.
  static constexpr SoftmaxShape columns(std::int64_t rows, std::int64_t columns, Pitches pitches = {}) {
    return axis(1, rows, columns, pitches);
  }
  /// The softmax over the middle extent of outer × reduced × inner elements. Pitches are those of the outer · reduced
  /// rows of `inner` elements.
  static constexpr SoftmaxShape axis(std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                                     Pitches pitches = {}) {
    if (inner == 1 && pitches == Pitches{}) return rows(outer, reduced);
    return {{outer, reduced, inner}, pitches, true};
  }
  /// The softmax of all n elements of an array.
  static constexpr SoftmaxShape array(std::int64_t n) { return rows(1, n); }
};

/// The families that tuned_softmax() and tuned_log_softmax() dispatch to: `softmax` with extents {rows, columns, 1} and
/// `softmax_columns` with extents {outer, reduced, inner}. Their operations are softmax and log_softmax, their buffers
/// {in, out}. Problem::scalars[0] is the scale; empty stands for 1.
const KernelFamily& softmax_family();
const KernelFamily& softmax_columns_family();

/// The Problem of a tuned_softmax() or tuned_log_softmax() call with both arrays aligned to `alignment` bytes.
Problem softmax_problem(const SoftmaxSpec& spec, const SoftmaxShape& shape, std::uint32_t alignment = kMaxAlignment);
Problem log_softmax_problem(const SoftmaxSpec& spec, const SoftmaxShape& shape,
                            std::uint32_t alignment = kMaxAlignment);

}  // namespace hone
