// tuned_softmax(): the softmax, or its logarithm, of rows or columns in device memory.
#pragma once

#include <hone/session.h>
#include <hone/softmax_spec.h>
#include <hone/stream.h>

namespace hone {

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
