// tuned_reduce_segments(): reduces every segment of an array, such as the rows of a CSR matrix.
#pragma once

#include <cstdint>

#include <hone/tuned_reduce.h>

namespace hone {

/// Reduces in[offsets[s] … offsets[s + 1]) for each of `segments` segments s, in the order of `stream`, and writes
/// v = info(spec.op).outputs values to out[s · v …]. All arrays are memory of the session's device.
///
/// `offsets` holds segments + 1 ascending numbers of `offset_dtype` (i32 or i64) from 0 to `elements`, the length of
/// `in`. They need not begin at 0 nor end at `elements`. The behaviour is undefined for offsets that descend or lie
/// outside of that range. With SessionOptions::validate_pointers the call waits for `stream`, reads the offsets and
/// throws invalid_argument that names the first wrong one; it cannot do so while `stream` is being captured.
///
/// An empty segment gives what tuned_reduce() gives for an empty array (0 for sums, 1 for products, NaN for means, …),
/// and −1 for argmin and argmax. Indices count from the beginning of their segment. Each array must be aligned to its
/// element. One winner gives the same bits from run to run for the same offsets and the same alignment of `in`. Neither
/// waits nor allocates on `stream`, except as said above. Thread-safe. docs/reductions.md says what tuning assumes
/// about the lengths of segments.
///
/// Throws Error: invalid_argument for null or misaligned pointers, an output that overlaps the elements or the offsets,
/// negative counts, more elements than an offset can count, `dot`, and dtypes that do not go together; otherwise as
/// Session::launch().
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

/// The same with dtypes from the pointers, checked at compile time:
/// tuned_reduce_segments(session, hone::sum, values, nnz, row_pointers, rows, sums, stream).
template <ReduceOp kOp, class T, class Offset, class Result>
Choice tuned_reduce_segments(Session& session, ReduceTag<kOp>, const T* in, std::int64_t elements,
                             const Offset* offsets, std::int64_t segments, Result* out, Stream stream,
                             NanPolicy nan = NanPolicy::propagate, Numerics numerics = Numerics::fast) {
  static_assert(info(kOp).inputs == 1, "dot takes two arrays: there is no segmented one");
  return tuned_reduce_segments(session, detail::spec_of<kOp, T, Result>(nan, numerics), in, elements, offsets, segments,
                               out, stream);
}

}  // namespace hone
