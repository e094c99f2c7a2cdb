// SoftmaxSpec, SoftmaxShape: describe a softmax, as a Problem that a Session can tune, prepare or launch.
#pragma once

#include <cstdint>
#include <optional>

#include <hone/problem.h>

namespace hone {

/// The dtypes of a softmax, and the scale of its elements. Plain data.
struct SoftmaxSpec {
  DType dtype = DType::f32;            ///< f16, bf16, f32 or f64
  std::optional<DType> result = {};    ///< f16, bf16, f32 or f64; empty: `dtype`
  double scale = 1;  ///< multiplies each element first; finite, rounded to the accumulator

  constexpr DType result_dtype() const { return result.value_or(dtype); }
  /// f64 where elements or results are, else f32.
  constexpr DType accumulator_dtype() const {
    return dtype == DType::f64 || result_dtype() == DType::f64 ? DType::f64 : DType::f32;
  }
};

/// The extent over which results add up to 1. Pitches are the distances, in elements, from one row of the matrix to the
/// next, in the input and in the output; 0 means that rows lie side by side.
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

/// The families that tuned_softmax() and tuned_log_softmax() dispatch to: `softmax` with extents {rows, columns, 1} and
/// `softmax_columns` with {outer, reduced, inner}. Operations softmax and log_softmax; buffers {in, out};
/// Problem::scalars[0] is the scale, 1 where it is empty.
const KernelFamily& softmax_family();
const KernelFamily& softmax_columns_family();

/// The Problem of a tuned_softmax() or tuned_log_softmax() call whose arrays are both aligned to `alignment` bytes.
Problem softmax_problem(const SoftmaxSpec& spec, const SoftmaxShape& shape, std::uint32_t alignment = kMaxAlignment);
Problem log_softmax_problem(const SoftmaxSpec& spec, const SoftmaxShape& shape,
                            std::uint32_t alignment = kMaxAlignment);

}  // namespace hone
