// tuned_reduce_segments(): reduce every segment of an array in device memory, as the rows of a CSR matrix.
#pragma once

#include <cstdint>

#include <hone/tuned_reduce.h>

namespace hone {

/// Writes the reduction of in[offsets[s] … offsets[s + 1]) to out[s · outputs] for each segment s of `segments`
/// (info(spec.op).outputs values each), all in memory of the session's device, in the order of `stream`.
///
/// `offsets` are segments + 1 numbers of `offset_dtype` (i32 or i64), ascending, from 0 to at most `elements`, the
/// length of `in`; what lies before the first and behind the last belongs to no segment. Offsets that descend or lie
/// elsewhere make the call undefined, unless SessionOptions::validate_pointers is on: then the call waits for `stream`,
/// reads them all and throws invalid_argument with the first that is wrong. (While `stream` is captured they cannot be
/// read.)
///
/// A segment without elements gives what tuned_reduce() gives for none (sums 0, products 1, NaN for means …), and −1
/// for argmin and argmax; these count from the beginning of their segment. `in`, `offsets` and `out` need the alignment
/// of their elements only. Results are bitwise equal from run to run for one winner, one alignment of `in`, and the
/// same offsets. Neither waits nor allocates on `stream`. Thread-safe. What tuning assumes of the lengths:
/// docs/reductions.md.
///
/// Throws Error: invalid_argument for null or misaligned pointers, negative counts, more elements than offsets can
/// name, `dot` (which takes two arrays), and types that do not go together; otherwise as Session::launch.
Choice tuned_reduce_segments(Session& session, const ReduceSpec& spec, const void* in, std::int64_t elements,
                             const void* offsets, DType offset_dtype, std::int64_t segments, void* out, Stream stream);

inline Choice tuned_reduce_segments(Session& session, const ReduceSpec& spec, const void* in, std::int64_t elements,
                                    const std::int32_t* offsets, std::int64_t segments, void* out, Stream stream) {
  return tuned_reduce_segments(session, spec, in, elements, offsets, DType::i32, segments, out, stream);
}
inline Choice tuned_reduce_segments(Session& session, const ReduceSpec& spec, const void* in, std::int64_t elements,
                                    const std::int64_t* offsets, std::int64_t segments, void* out, Stream stream) {
  return tuned_reduce_segments(session, spec, in, elements, offsets, DType::i64, segments, out, stream);
}

/// With types that are checked at compile time: tuned_reduce_segments(session, hone::sum, values, nnz, row_pointers,
/// rows, sums, stream).
template <ReduceOp kOp, class T, class Offset, class Result>
Choice tuned_reduce_segments(Session& session, ReduceTag<kOp>, const T* in, std::int64_t elements,
                             const Offset* offsets, std::int64_t segments, Result* out, Stream stream,
                             NanPolicy nan = NanPolicy::propagate) {
  static_assert(info(kOp).inputs == 1, "dot takes two arrays: there is no segmented one");
  return tuned_reduce_segments(session, detail::spec_of<kOp, T, Result>(nan), in, elements, offsets, segments, out,
                               stream);
}

}  // namespace hone
