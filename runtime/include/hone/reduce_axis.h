// tuned_reduce_rows(), tuned_reduce_columns(): reduce one extent of a matrix or of a three-dimensional array.
#pragma once

#include <cstdint>

#include <hone/tuned_reduce.h>

namespace hone {

/// Writes the reduction of row r to out[r · v … r · v + v), v = info(spec.op).outputs: the two values of minmax and of
/// mean_variance lie side by side. Indices of argmin and argmax count within the row. Otherwise each row is reduced as
/// tuned_reduce() would do it: the same results and types, NaN policies, ties, empty rows, and bits that repeat from
/// run to run for one winner and one alignment. Elements in the gaps of a pitch may be read, but change nothing.
///
/// `in` and its pitch need the alignment of the element only; rows that all begin at a multiple of 16 bytes are a
/// problem of their own. Without rows nothing is written, and the Choice has no winner. Neither waits nor allocates on
/// `stream`. Thread-safe.
///
/// Throws Error: invalid_argument for null or misaligned pointers, negative extents, a pitch that is negative or
/// smaller than a row, shapes that no memory holds, empty rows where there is no result, and types that do not go
/// together; otherwise as Session::launch.
Choice tuned_reduce_rows(Session& session, const ReduceSpec& spec, const void* in, const RowsShape& shape, void* out,
                         Stream stream);

/// The same for the middle extent of three: writes the reduction of in[o, 0 … reduced, i] to out[(o · inner + i) · v
/// …].
Choice tuned_reduce_columns(Session& session, const ReduceSpec& spec, const void* in, const ColumnsShape& shape,
                            void* out, Stream stream);

/// With types that are checked at compile time:
/// tuned_reduce_rows(session, hone::sum, in, {.rows = m, .columns = n}, out, stream).
template <ReduceOp kOp, class T, class Result>
Choice tuned_reduce_rows(Session& session, ReduceTag<kOp>, const T* in, const RowsShape& shape, Result* out,
                         Stream stream, NanPolicy nan = NanPolicy::propagate) {
  static_assert(info(kOp).inputs == 1, "a product of two arrays has no rows to reduce");
  return tuned_reduce_rows(session, detail::spec_of<kOp, T, Result>(nan), in, shape, out, stream);
}

template <ReduceOp kOp, class T, class Result>
Choice tuned_reduce_columns(Session& session, ReduceTag<kOp>, const T* in, const ColumnsShape& shape, Result* out,
                            Stream stream, NanPolicy nan = NanPolicy::propagate) {
  static_assert(info(kOp).inputs == 1, "a product of two arrays has no columns to reduce");
  return tuned_reduce_columns(session, detail::spec_of<kOp, T, Result>(nan), in, shape, out, stream);
}

/// log Σ exp(x) of each row, or of each column: the normaliser of a softmax.
template <class T, class Result>
Choice tuned_logsumexp(Session& session, const T* in, const RowsShape& shape, Result* out, Stream stream,
                       NanPolicy nan = NanPolicy::propagate) {
  return tuned_reduce_rows(session, logsumexp, in, shape, out, stream, nan);
}
template <class T, class Result>
Choice tuned_logsumexp(Session& session, const T* in, const ColumnsShape& shape, Result* out, Stream stream,
                       NanPolicy nan = NanPolicy::propagate) {
  return tuned_reduce_columns(session, logsumexp, in, shape, out, stream, nan);
}

}  // namespace hone
