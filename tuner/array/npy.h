// NpyHeader: what the header of a NumPy .npy file says, and how one is written.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/dtype.h>

namespace hone::tuner {

/// The first bytes of every .npy file.
inline constexpr std::string_view kNpyMagic{"\x93NUMPY", 6};

struct NpyHeader {
  DType dtype = DType::f32;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;  ///< empty for a 0-d array, which has one element
  std::int64_t elements = 1;        ///< product of the shape
  std::int64_t data_offset = 0;     ///< bytes in front of the first element
};

/// Reads a header of format 1.0, 2.0 or 3.0 (numpy.lib.format) and leaves `in` at the first element.
///
/// Throws Error(io_failed) that says what is wrong and what to do: a bad magic, an unknown version, a truncated or
/// malformed header, an element type that Hone does not reduce (big-endian, complex, structured, …), a shape
/// whose size overflows.
NpyHeader read_npy_header(std::istream& in);

/// The header of a C-ordered array, as numpy.save writes it: format 1.0, the elements begin at a multiple of 64 bytes.
/// Throws Error(unsupported) for bf16, which NumPy does not have.
std::string make_npy_header(DType dtype, std::span<const std::int64_t> shape);

/// "(3, 4)", "(3,)", "()": as Python spells a shape.
std::string npy_shape_text(std::span<const std::int64_t> shape);

}  // namespace hone::tuner
