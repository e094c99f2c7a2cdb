// CopySpec: a copy, described so that a Session can tune, prepare or launch it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hone/problem.h>

namespace hone {

/// A copy of a row-major matrix of rows × columns elements. Plain data.
struct CopySpec {
  std::size_t element_bytes = 4;  ///< 1, 2, 4, 8 or 16; their dtype does not matter
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::int64_t in_pitch = 0;   ///< leading dimension of the input, in elements; 0: `columns`
  std::int64_t out_pitch = 0;  ///< leading dimension of the output, in elements; 0: `columns`

  constexpr std::int64_t input_pitch() const { return in_pitch == 0 ? columns : in_pitch; }
  constexpr std::int64_t output_pitch() const { return out_pitch == 0 ? columns : out_pitch; }
};

/// The family that tuned_copy() dispatches to. Its extents are {rows, columns, 1}, its dtypes u8, u16, u32 and u64, by
/// the size of an element, and its buffers {in, out}. If neither array has gaps between its rows, they are one long
/// row.
const KernelFamily& copy_family();

/// The Problem of a tuned_copy() call with both arrays aligned to `alignment` bytes, and pitches that differ by a
/// multiple of `alignment` bytes.
Problem copy_problem(const CopySpec& spec, std::uint32_t alignment = kMaxAlignment);

}  // namespace hone
