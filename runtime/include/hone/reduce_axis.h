// tuned_reduce_rows() and tuned_reduce_columns(): reduce one extent of a matrix or of a three-dimensional array.
#pragma once

#include <cstdint>

#include <hone/tuned_reduce.h>

namespace hone {

/// Reduces each row of a row-major matrix, in the order of `stream`. `in` and `out` are memory of the session's device.
/// The result of row r is written to out[r · v … r · v + v) with v = info(spec.op).outputs, so the two values of minmax
/// and of mean_variance are neighbours.
///
/// Each row is reduced as by tuned_reduce(): with the same results, types, NaN policies, ties and empty results, and
/// with the same bits from run to run for one winner and one alignment. With Numerics::reproducible a row has the same
/// bits wherever it is and however many rows there are, and a column those of a row of its elements. Indices of argmin
/// and argmax count within the row. Elements in the gaps of a pitch may be read, but have no effect.
///
/// `in` must be aligned to its element. Rows that all begin at a multiple of 16 bytes are another problem class than
/// others. Without rows nothing is written, and the Choice has no winner. Neither waits nor allocates on `stream`.
/// Thread-safe.
///
/// Throws Error: invalid_argument for null or misaligned pointers, an output that overlaps a row (it may lie in a gap),
/// negative extents, a pitch shorter than a row, extents whose product overflows, empty rows of an operation that needs
/// elements, and dtypes that do not go together; otherwise as Session::launch().
Choice tuned_reduce_rows(Session& session, const ReduceSpec& spec, const void* in, const RowsShape& shape, void* out,
                         Stream stream);

/// The same for the middle extent of a row-major array of outer × reduced × inner elements: the result for in[o][…][i]
/// is written to out[(o · inner + i) · v …].
Choice tuned_reduce_columns(Session& session, const ReduceSpec& spec, const void* in, const ColumnsShape& shape,
                            void* out, Stream stream);

/// The same with dtypes from the pointers, checked at compile time:
/// tuned_reduce_rows(session, hone::sum, in, {.rows = m, .columns = n}, out, stream).
template <ReduceOp kOp, class T, class Result>
Choice tuned_reduce_rows(Session& session, ReduceTag<kOp>, const T* in, const RowsShape& shape, Result* out,
                         Stream stream, NanPolicy nan = NanPolicy::propagate, Numerics numerics = Numerics::fast) {
  static_assert(info(kOp).inputs == 1, "a product of two arrays has no rows to reduce");
  return tuned_reduce_rows(session, detail::spec_of<kOp, T, Result>(nan, numerics), in, shape, out, stream);
}

template <ReduceOp kOp, class T, class Result>
Choice tuned_reduce_columns(Session& session, ReduceTag<kOp>, const T* in, const ColumnsShape& shape, Result* out,
                            Stream stream, NanPolicy nan = NanPolicy::propagate, Numerics numerics = Numerics::fast) {
  static_assert(info(kOp).inputs == 1, "a product of two arrays has no columns to reduce");
  return tuned_reduce_columns(session, detail::spec_of<kOp, T, Result>(nan, numerics), in, shape, out, stream);
}

/// Computes log Σ exp(x) of each row, or of each column: the normaliser of a softmax.
template <class T, class Result>
Choice tuned_logsumexp(Session& session, const T* in, const RowsShape& shape, Result* out, Stream stream,
                       NanPolicy nan = NanPolicy::propagate, Numerics numerics = Numerics::fast) {
  return tuned_reduce_rows(session, logsumexp, in, shape, out, stream, nan, numerics);
}
template <class T, class Result>
Choice tuned_logsumexp(Session& session, const T* in, const ColumnsShape& shape, Result* out, Stream stream,
                       NanPolicy nan = NanPolicy::propagate, Numerics numerics = Numerics::fast) {
  return tuned_reduce_columns(session, logsumexp, in, shape, out, stream, nan, numerics);
}

}  // namespace hone
