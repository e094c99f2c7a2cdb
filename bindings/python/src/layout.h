// Layout: how an operation along some axes of an array is one call of the library.
#pragma once

#include <cstdint>
#include <optional>

#include "src/array.h"

namespace hone::python {

/// The axes that an operation reduces, as bits.
using Axes = std::uint32_t;

/// `axis` as NumPy takes it: None (all axes), an integer or a tuple of integers, negative ones from the end. Raises
/// IndexError for an axis that is not there, ValueError for one that is named twice, TypeError for anything else.
Axes parse_axes(nb::handle axis, int ndim);

/// The shape of the results.
Shape reduced_shape(const Shape& shape, Axes axes, bool keepdims);

/// outer × reduced × inner elements, `pitch` elements from one row to the next: of `inner`, or of `reduced` for `rows`.
struct Layout {
  enum class Kind { array, rows, columns } kind = Kind::array;
  std::int64_t outer = 1;
  std::int64_t reduced = 1;
  std::int64_t inner = 1;
  std::int64_t pitch = 0;
};

/// How far the axes may be taken in the order of the memory instead of their own.
enum class Reorder {
  none,
  between,  ///< reduced axes may change places with others, which keep their order
  reduced,  ///< reduced axes with each other, too: indices in a flattened array would be others
};

/// Nothing, if no family of kernels takes these strides. Results are in the order of the axes that are kept.
std::optional<Layout> find_layout(const Array& array, Axes axes, Reorder reorder);

}  // namespace hone::python
