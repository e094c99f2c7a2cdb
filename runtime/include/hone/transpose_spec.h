// TransposeSpec: a transpose, described so that a Session can tune, prepare or launch it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hone/problem.h>

namespace hone {

/// A transpose of `batch` contiguous row-major matrices of rows × columns elements. Plain data.
struct TransposeSpec {
  std::size_t element_bytes = 4;  ///< 1, 2, 4, 8 or 16; their dtype does not matter
  std::int64_t rows = 0;          ///< rows of the input, and columns of the output
  std::int64_t columns = 0;
  std::int64_t batch = 1;
  std::int64_t in_pitch = 0;   ///< leading dimension of the input, in elements; 0: `columns`
  std::int64_t out_pitch = 0;  ///< leading dimension of the output, in elements; 0: `rows`

  /// The pitches, with the default 0 resolved. The matrices of a batch are rows × input_pitch() elements apart in the
  /// input, and columns × output_pitch() elements apart in the output.
  constexpr std::int64_t input_pitch() const { return in_pitch == 0 ? columns : in_pitch; }
  constexpr std::int64_t output_pitch() const { return out_pitch == 0 ? rows : out_pitch; }
};

/// The family that tuned_transpose() dispatches to. Its extents are {batch, rows, columns}, its dtypes u8, u16, u32 and
/// u64, by the size of an element, and its buffers {in, out}. Its operations are `transpose` and, for square matrices
/// that may be their own output, `transpose_in_place`. Elements of 16 bytes are pairs of u64: `transpose_pairs` and
/// `transpose_pairs_in_place`.
const KernelFamily& transpose_family();

/// The Problem of a tuned_transpose() call with both arrays aligned to `alignment` bytes. Its alignment is the largest
/// power of two that divides both addresses and both pitches, in bytes.
Problem transpose_problem(const TransposeSpec& spec, std::uint32_t alignment = kMaxAlignment, bool in_place = false);

}  // namespace hone
