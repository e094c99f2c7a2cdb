// CopySpec: describes a copy, as a Problem that a Session can tune, prepare or launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hone/problem.h>

namespace hone {

/// A row-major matrix of rows × columns elements. Plain data.
struct CopySpec {
  std::size_t element_bytes = 4;  ///< 1, 2, 4, 8 or 16; their dtype does not matter
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::int64_t in_pitch = 0;   ///< elements from one row of the input to the next; 0: `columns`
  std::int64_t out_pitch = 0;  ///< elements from one row of the output to the next; 0: `columns`

  constexpr std::int64_t input_pitch() const { return in_pitch == 0 ? columns : in_pitch; }
  constexpr std::int64_t output_pitch() const { return out_pitch == 0 ? columns : out_pitch; }
};

/// The family that tuned_copy() dispatches to. Extents {rows, columns, 1}; dtypes u8, u16, u32 and u64 by the size of an
/// element; buffers {in, out}. Rows without gaps in both arrays become one long row.
const KernelFamily& copy_family();

/// The Problem of a tuned_copy() call whose arrays are both aligned to `alignment` bytes, and whose pitches differ by a
/// multiple of `alignment` bytes.
Problem copy_problem(const CopySpec& spec, std::uint32_t alignment = kMaxAlignment);

}  // namespace hone
