// TransposeSpec: describes a transpose, as a Problem that a Session can tune, prepare or launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hone/problem.h>

namespace hone {

/// A batch of row-major matrices of rows × columns elements, one after the other. Plain data.
struct TransposeSpec {
  std::size_t element_bytes = 4;  ///< 1, 2, 4, 8 or 16; their dtype does not matter
  std::int64_t rows = 0;          ///< of the input, and columns of the output
  std::int64_t columns = 0;
  std::int64_t batch = 1;
  std::int64_t in_pitch = 0;   ///< elements from one row of the input to the next; 0: `columns`
  std::int64_t out_pitch = 0;  ///< elements from one row of the output to the next; 0: `rows`

  /// Pitches without the default 0. Matrices of a batch lie rows × input_pitch() elements apart in the input, and columns
  /// × output_pitch() elements apart in the output.
  constexpr std::int64_t input_pitch() const { return in_pitch == 0 ? columns : in_pitch; }
  constexpr std::int64_t output_pitch() const { return out_pitch == 0 ? rows : out_pitch; }
};

/// The family that tuned_transpose() dispatches to. Extents {batch, rows, columns}; dtypes u8, u16, u32 and u64 by the
/// size of an element; buffers {in, out}. Operations: `transpose` and, for square matrices that may be their own
/// output, `transpose_in_place`; elements of 16 bytes are pairs of u64: `transpose_pairs` and
/// `transpose_pairs_in_place`.
const KernelFamily& transpose_family();

/// The Problem of a tuned_transpose() call whose arrays are both aligned to `alignment` bytes. Loads and stores are as
/// wide as the alignment that both addresses and both pitches, in bytes, share.
Problem transpose_problem(const TransposeSpec& spec, std::uint32_t alignment = kMaxAlignment, bool in_place = false);

}  // namespace hone
