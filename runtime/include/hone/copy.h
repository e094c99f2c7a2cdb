// tuned_copy(): copies rows of elements in device memory. Other kernels are compared with its bandwidth.
#pragma once

#include <cstdint>

#include <hone/copy_spec.h>
#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

/// Enqueues out[r][c] = in[r][c] on `stream`. `in` and `out` are memory of the session's device.
///
/// The gaps between the rows of `out` are not written. A pointer must be aligned to its element, elements of 16 bytes
/// to 8. The copy has full speed if both addresses and the difference of the two pitches are multiples of 16 bytes,
/// wherever the single rows begin. Neither waits nor allocates on `stream`. An empty copy launches nothing, and its
/// Choice has no winner. Thread-safe.
///
/// Throws Error: invalid_argument for a null or misaligned pointer, an unknown element size, negative extents, extents
/// whose product overflows, a pitch that is shorter than a row, and arrays that overlap (at equal pitches, rows of one
/// may lie in the gaps of the other); otherwise as Session::launch.
Choice tuned_copy(Session& session, const CopySpec& spec, const void* in, void* out, Stream stream);

/// Copies n contiguous elements: tuned_copy(session, in, n, out, stream).
template <class T>
Choice tuned_copy(Session& session, const T* in, std::int64_t n, T* out, Stream stream) {
  return tuned_copy(session, {.element_bytes = sizeof(T), .columns = n}, in, out, stream);
}

}  // namespace hone
