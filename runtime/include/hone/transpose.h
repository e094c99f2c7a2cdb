// tuned_transpose(): transposes matrices in device memory, into another array or in place.
#pragma once

#include <cstdint>

#include <hone/session.h>
#include <hone/stream.h>
#include <hone/transpose_spec.h>

namespace hone {

/// Enqueues out[b][c][r] = in[b][r][c] on `stream`. `in` and `out` are memory of the session's device.
///
/// The gaps between the rows of `out` are not written. `out` may be `in` if the matrices are square and both pitches
/// are equal; any other overlap is an error. A pointer must be aligned to its element, elements of 16 bytes to 8.
/// Addresses and pitches that are multiples of 16 bytes are the fastest (docs/transpose.md). Neither waits nor
/// allocates on `stream`. An empty matrix launches nothing, and its Choice has no winner. Thread-safe.
///
/// Throws Error: invalid_argument for a null or misaligned pointer, an unknown element size, negative extents, extents
/// whose product overflows, a pitch that is shorter than a row, and arrays that overlap (at equal pitches, rows of one
/// may lie in the gaps of the other); otherwise as Session::launch.
Choice tuned_transpose(Session& session, const TransposeSpec& spec, const void* in, void* out, Stream stream);

/// Transposes one matrix without gaps between its rows: tuned_transpose(session, in, rows, columns, out, stream).
template <class T>
Choice tuned_transpose(Session& session, const T* in, std::int64_t rows, std::int64_t columns, T* out, Stream stream) {
  return tuned_transpose(session, {.element_bytes = sizeof(T), .rows = rows, .columns = columns}, in, out, stream);
}

}  // namespace hone
