// tuned_transpose(): transpose matrices in device memory, into another array or in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hone/session.h>
#include <hone/stream.h>

namespace hone {

/// What is transposed: `batch` matrices of rows × columns elements, one after the other.
struct TransposeSpec {
  std::size_t element_bytes = 4;  ///< 1, 2, 4, 8 or 16; what the elements mean makes no difference
  std::int64_t rows = 0;          ///< of the input; the output has as many columns
  std::int64_t columns = 0;
  std::int64_t batch = 1;
  std::int64_t in_pitch = 0;   ///< elements from one row of the input to the next; 0: `columns`
  std::int64_t out_pitch = 0;  ///< likewise of the output; 0: `rows`

  /// Elements from the first of one matrix to the first of the next are rows × in_pitch and columns × out_pitch.
  constexpr std::int64_t input_pitch() const { return in_pitch == 0 ? columns : in_pitch; }
  constexpr std::int64_t output_pitch() const { return out_pitch == 0 ? rows : out_pitch; }
};

/// The built-in family behind tuned_transpose(): extents {batch, rows, columns}, dtypes u8, u16, u32 and u64 by the
/// size of an element, buffers {in, out}. Operations: `transpose` and, for square matrices that may be their own
/// output, `transpose_in_place`; elements of 16 bytes are pairs of u64: `transpose_pairs` and
/// `transpose_pairs_in_place`.
const KernelFamily& transpose_family();

/// The Problem that tuned_transpose() asks for arrays at `alignment` bytes: what both addresses and the bytes of both
/// pitches are multiples of is what rows are read and written by.
Problem transpose_problem(const TransposeSpec& spec, std::uint32_t alignment = kMaxAlignment, bool in_place = false);

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
