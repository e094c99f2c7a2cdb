// tuned_transpose(): transpose matrices in device memory, into another array or in place.
#pragma once

#include <cstdint>

#include <hone/session.h>
#include <hone/stream.h>
#include <hone/transpose_spec.h>

namespace hone {

/// out[b][c][r] = in[b][r][c] in memory of the session's device, in the order of `stream`.
///
/// Elements of `out` between its rows are not touched. `out` may be `in` if the matrices are square and both pitches
/// are equal; any other overlap is refused. Pointers need the alignment of their elements only, those of 16 bytes that
/// of 8; where rows do not lie at multiples of 16 bytes, they are moved by the largest unit that they do. Neither waits
/// nor allocates on `stream`. An empty matrix launches nothing: the Choice then has no winner. Thread-safe.
///
/// Throws Error: invalid_argument for a null or misaligned pointer, an unknown element size, negative extents, extents
/// whose product overflows, a pitch that is shorter than a row, and arrays that overlap; otherwise as Session::launch.
Choice tuned_transpose(Session& session, const TransposeSpec& spec, const void* in, void* out, Stream stream);

/// One matrix of a C++ type: tuned_transpose(session, in, rows, columns, out, stream).
template <class T>
Choice tuned_transpose(Session& session, const T* in, std::int64_t rows, std::int64_t columns, T* out, Stream stream) {
  return tuned_transpose(session, {.element_bytes = sizeof(T), .rows = rows, .columns = columns}, in, out, stream);
}

}  // namespace hone
