// tuned_softmax() and tuned_log_softmax(): the softmax of rows or columns, and its logarithm.
#pragma once

#include <hone/session.h>
#include <hone/softmax_spec.h>
#include <hone/stream.h>

namespace hone {

/// Writes exp(scale·x − max) ÷ Σ exp(scale·x − max) for each element x of a row (or column) to its place in `out`, in
/// the order of `stream`; max is the largest scale·x of the row. `in` and `out` are memory of the session's device.
/// They may be equal if elements and results have the same size and pitch, and must not overlap otherwise. The gaps
/// between rows are not written.
///
/// Extents may be 0 (nothing is written), and their product may be beyond 2^32. A pointer must be aligned to its
/// element. A row becomes NaN as a whole, as in PyTorch, if it has a NaN, or +∞ among scale·x, or only −∞; beside
/// finite elements −∞ becomes 0. A scale of 0 gives equal shares to all finite elements. No intermediate overflows.
/// Results below the smallest normal number of the accumulator may become 0. One winner gives the same bits from run to
/// run for one alignment. Neither waits nor allocates on `stream`. Thread-safe. docs/softmax.md has the bounds of the
/// errors.
///
/// Throws Error: invalid_argument for a null or misaligned pointer, arrays that overlap, a negative extent, a product
/// of extents that overflows, a pitch shorter than a row, a scale that is not finite or too large
/// (SoftmaxSpec::scale), and dtypes that do not go together; otherwise as Session::launch().
Choice tuned_softmax(Session& session, const SoftmaxSpec& spec, const void* in, const SoftmaxShape& shape, void* out,
                     Stream stream);

/// The same for the logarithm, scale·x − max − log Σ exp(scale·x − max), which stays accurate far below 0. −∞ beside
/// finite elements stays −∞.
Choice tuned_log_softmax(Session& session, const SoftmaxSpec& spec, const void* in, const SoftmaxShape& shape,
                         void* out, Stream stream);

/// The same with the dtypes from the pointers.
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
