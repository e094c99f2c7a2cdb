// ReduceSpec, RowsShape, ColumnsShape: describe a reduction, as a Problem that a Session can tune, prepare or launch.
#pragma once

#include <cstdint>
#include <optional>

#include <hone/problem.h>
#include <hone/reduce_op.h>

namespace hone {

/// A reduction: its operation, its dtypes, and its treatment of NaNs. Plain data.
struct ReduceSpec {
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::f32;
  NanPolicy nan = NanPolicy::propagate;
  std::optional<DType> accumulator = {};  ///< empty: reduce_accumulator_dtype()
  std::optional<DType> result = {};       ///< empty: reduce_result_dtype()

  constexpr DType accumulator_dtype() const { return accumulator.value_or(reduce_accumulator_dtype(op, dtype)); }
  constexpr DType result_dtype() const {
    return result.value_or(reduce_result_dtype(op, dtype, accumulator_dtype()));
  }
};

/// The family that tuned_reduce() dispatches to. Extents {n, 1, 1}; operations in the order of ReduceOp; buffers
/// {in[n], out[outputs]}, for dot {a[n], b[n], out[1]}. Lives as long as the process, as all built-in families do.
const KernelFamily& reduce_family();

/// The Problem of a tuned_reduce() call with n elements in an array that is aligned to `alignment` bytes, a power of two
/// up to kMaxAlignment. For dot, `alignment` is that of the distance between the two arrays.
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
  std::int64_t pitch = 0;  ///< elements from the beginning of one row to that of the next; 0: columns
};

/// A row-major array of outer × reduced × inner elements; the middle extent is reduced, which leaves outer × inner
/// outputs. For the columns of a matrix, outer is 1.
struct ColumnsShape {
  std::int64_t outer = 1;
  std::int64_t reduced = 0;  ///< the rows of a matrix
  std::int64_t inner = 0;    ///< the columns of a matrix
  std::int64_t pitch = 0;    ///< elements from the beginning of one row of `inner` to that of the next; 0: inner
};

/// The families that tuned_reduce_rows() and tuned_reduce_columns() dispatch to. Extents {rows, columns, 1} and {outer,
/// reduced, inner}; operations in the order of ReduceOp, without dot, which takes two arrays; pitches {of the input, 0};
/// buffers {in, out}.
const KernelFamily& reduce_rows_family();
const KernelFamily& reduce_columns_family();

/// The Problem of a tuned_reduce_rows() or tuned_reduce_columns() call whose input is aligned to `alignment` bytes.
/// Columns with an inner extent of 1 and no gaps are the rows of a matrix: their Problem is one of reduce_rows_family().
Problem reduce_rows_problem(const ReduceSpec& spec, const RowsShape& shape, std::uint32_t alignment = kMaxAlignment);
Problem reduce_columns_problem(const ReduceSpec& spec, const ColumnsShape& shape,
                               std::uint32_t alignment = kMaxAlignment);

/// The families that tuned_reduce_segments() dispatches to: `reduce_segments` for i32 offsets, `reduce_segments_i64` for
/// i64 offsets. Extents {segments, elements, 1}; operations in the order of ReduceOp, without dot; buffers
/// {in[elements], offsets[segments + 1], out[segments · outputs]}. Throws Error(invalid_argument) for any other dtype.
const KernelFamily& segmented_reduce_family(DType offsets = DType::i32);

/// The Problem of a tuned_reduce_segments() call. It has no alignment, because segments start anywhere.
Problem segmented_reduce_problem(const ReduceSpec& spec, DType offsets, std::int64_t segments, std::int64_t elements);

}  // namespace hone
