// ReduceSpec, RowsShape and ColumnsShape: a reduction, described so that a Session can tune, prepare or launch it.
#pragma once

#include <cstdint>
#include <optional>

#include <hone/problem.h>
#include <hone/reduce_op.h>

namespace hone {

/// The operation, dtypes, NaN policy and numerics of a reduction. Plain data.
struct ReduceSpec {
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  NanPolicy nan = NanPolicy::propagate;
  std::optional<DType> accumulator = {};  ///< empty: reduce_accumulator_dtype()
  std::optional<DType> result = {};       ///< empty: reduce_result_dtype()
  Numerics numerics = Numerics::fast;     ///< no matter where the result does not depend on an order

  constexpr DType accumulator_dtype() const { return accumulator.value_or(reduce_accumulator_dtype(op, dtype)); }
  constexpr DType result_dtype() const {
    return result.value_or(reduce_result_dtype(op, dtype, accumulator_dtype()));
  }
  constexpr bool is_reproducible() const {
    return numerics == Numerics::reproducible && reduce_depends_on_order(op, dtype, accumulator_dtype());
  }
};

/// The family that tuned_reduce() dispatches to. Its extents are {n, 1, 1}, its operations those of ReduceOp in their
/// order, and its buffers {in[n], out[outputs]}, or {a[n], b[n], out[1]} for dot. It lives as long as the process, as
/// all built-in families do.
const KernelFamily& reduce_family();

/// The Problem of a tuned_reduce() call with n elements in an array that is aligned to `alignment` bytes, a power of
/// two up to kMaxAlignment. For dot, `alignment` is that of the difference of the two addresses.
Problem reduce_problem(const ReduceSpec& spec, std::int64_t n, std::uint32_t alignment = kMaxAlignment);
inline Problem reduce_problem(ReduceOp op, DType dtype, std::int64_t n, std::uint32_t alignment = kMaxAlignment) {
  return reduce_problem({.op = op, .dtype = dtype}, n, alignment);
}

/// Recovers the spec from a Problem of one of the families reduce, reduce_rows, reduce_columns and reduce_segments.
ReduceSpec reduce_spec_of(const Problem& problem);

/// A row-major matrix; each row is reduced to one output.
struct RowsShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pitch = 0;  ///< leading dimension: elements from one row to the next; 0: columns
};

/// A row-major array of outer × reduced × inner elements, whose middle extent is reduced to outer × inner outputs. For
/// the columns of a matrix, outer is 1.
struct ColumnsShape {
  std::int64_t outer = 1;
  std::int64_t reduced = 0;  ///< rows of the matrix
  std::int64_t inner = 0;    ///< columns of the matrix
  std::int64_t pitch = 0;    ///< leading dimension: elements from one row of `inner` to the next; 0: inner
};

/// The families that tuned_reduce_rows() and tuned_reduce_columns() dispatch to. Their extents are {rows, columns, 1}
/// and {outer, reduced, inner}, their operations those of ReduceOp, of which dot is refused, their pitches {that of the
/// input, 0}, and their buffers {in, out}.
const KernelFamily& reduce_rows_family();
const KernelFamily& reduce_columns_family();

/// The Problem of a tuned_reduce_rows() or tuned_reduce_columns() call with an input that is aligned to `alignment`
/// bytes. Columns with an inner extent of 1 and no gaps are rows: their Problem is one of reduce_rows_family().
Problem reduce_rows_problem(const ReduceSpec& spec, const RowsShape& shape, std::uint32_t alignment = kMaxAlignment);
Problem reduce_columns_problem(const ReduceSpec& spec, const ColumnsShape& shape,
                               std::uint32_t alignment = kMaxAlignment);

/// The families that tuned_reduce_segments() dispatches to: `reduce_segments` for i32 offsets and `reduce_segments_i64`
/// for i64 offsets. Their extents are {segments, elements, 1}, their operations those of ReduceOp, of which dot is
/// refused, and their buffers {in[elements], offsets[segments + 1], out[segments · outputs]}. Throws
/// Error(invalid_argument) for any other dtype.
const KernelFamily& segmented_reduce_family(DType offsets = DType::i32);

/// The Problem of a tuned_reduce_segments() call. Its class does not depend on the alignment of the array, because
/// segments start anywhere.
Problem segmented_reduce_problem(const ReduceSpec& spec, DType offsets, std::int64_t segments, std::int64_t elements);

}  // namespace hone
