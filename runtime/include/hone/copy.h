// tuned_copy(): copy rows of elements in device memory; the ceiling that other kernels are compared with.
#pragma once

#include <cstdint>

#include <hone/copy_spec.h>
#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

/// out[r][c] = in[r][c] in memory of the session's device, in the order of `stream`.
///
/// Elements of `out` between its rows are not touched. Pointers need the alignment of their elements only, those of 16
/// bytes that of 8. At full speed where both addresses and the difference of the pitches are multiples of 16 bytes,
/// however the single rows lie. Neither waits nor allocates on `stream`. Where there is nothing to copy nothing is
/// launched: the Choice then has no winner. Thread-safe.
///
/// Throws Error: invalid_argument for a null or misaligned pointer, an unknown element size, negative extents, extents
/// whose product overflows, a pitch that is shorter than a row, and arrays that overlap; otherwise as Session::launch.
Choice tuned_copy(Session& session, const CopySpec& spec, const void* in, void* out, Stream stream);

/// n elements of a C++ type: tuned_copy(session, in, n, out, stream).
template <class T>
Choice tuned_copy(Session& session, const T* in, std::int64_t n, T* out, Stream stream) {
  return tuned_copy(session, {.element_bytes = sizeof(T), .columns = n}, in, out, stream);
}

}  // namespace hone
