// Axes of arrays: what an operation along one of them means for memory in C order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tuner/array/input_file.h"

namespace hone::tuner {

/// An array as outer × along × inner: the extents before the axis, the axis, and those behind it, whose elements are
/// contiguous. Rows are {rows, columns, 1}, columns of a matrix {1, rows, columns}.
struct AxisSplit {
  std::int64_t outer = 1;
  std::int64_t along = 1;
  std::int64_t inner = 1;

  bool operator==(const AxisSplit&) const = default;
};

/// The axis that `text` names in an array of so many dimensions: 0 is the first, -1 the last. Throws
/// CommandError(usage) for other texts and for an axis that the array does not have.
std::size_t parse_axis(const std::string& text, const InputFile& input);

AxisSplit split_at(std::span<const std::int64_t> shape, std::size_t axis);

/// Throws CommandError(usage), with what to do, where the axes of the file do not lie in memory as its shape says: an
/// array in Fortran order.
void require_c_order(const InputFile& input);

}  // namespace hone::tuner
