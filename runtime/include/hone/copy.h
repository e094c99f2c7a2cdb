// tuned_copy(): copy rows of elements in device memory; the ceiling that other kernels are compared with.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

/// What is copied: rows × columns elements.
struct CopySpec {
  std::size_t element_bytes = 4;  ///< 1, 2, 4, 8 or 16; what the elements mean makes no difference
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::int64_t in_pitch = 0;   ///< elements from one row of the input to the next; 0: `columns`
  std::int64_t out_pitch = 0;  ///< likewise of the output

  constexpr std::int64_t input_pitch() const { return in_pitch == 0 ? columns : in_pitch; }
  constexpr std::int64_t output_pitch() const { return out_pitch == 0 ? columns : out_pitch; }
};

/// The built-in family behind tuned_copy(): extents {rows, columns, 1}, dtypes u8, u16, u32 and u64 by the size of an
/// element, buffers {in, out}. Rows that lie side by side on both sides are one long row.
const KernelFamily& copy_family();

/// The Problem that tuned_copy() asks for arrays at `alignment` bytes, whose pitches differ by a multiple of it, too.
Problem copy_problem(const CopySpec& spec, std::uint32_t alignment = kMaxAlignment);

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
