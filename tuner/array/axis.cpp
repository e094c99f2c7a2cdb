#include "tuner/array/axis.h"

#include <fmt/core.h>

#include <charconv>

#include "tuner/array/npy.h"
#include "tuner/text/command_error.h"
#include "tuner/text/table.h"

namespace hone::tuner {

std::size_t parse_axis(const std::string& text, const InputFile& input) {
  const auto dimensions = static_cast<std::int64_t>(input.shape.size());
  std::int64_t axis = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), axis);
  if (error != std::errc{} || end != text.data() + text.size())
    throw CommandError(ExitCode::usage,
                       fmt::format("'{}' is no axis; axes are numbers: 0 is the first, 1 the second, -1 the last",
                                   printable(text)));
  if (axis < -dimensions || axis >= dimensions)
    throw CommandError(
        ExitCode::usage,
        fmt::format("'{}' has the shape {}, so there is no axis {}{}", printable(input.path.string()),
                    npy_shape_text(input.shape), axis,
                    dimensions == 0 ? "" : fmt::format("; give one from {} to {}", -dimensions, dimensions - 1)));
  return static_cast<std::size_t>(axis < 0 ? axis + dimensions : axis);
}

AxisSplit split_at(std::span<const std::int64_t> shape, std::size_t axis) {
  AxisSplit split{.along = shape[axis]};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i < axis) split.outer *= shape[i];
    if (i > axis) split.inner *= shape[i];
  }
  return split;
}

void require_c_order(const InputFile& input) {
  if (!input.fortran_order) return;
  throw CommandError(
      ExitCode::usage,
      fmt::format("'{}' is in Fortran order: its first axis is contiguous, not its last; save it again with "
                  "numpy.save(file, numpy.ascontiguousarray(a))",
                  printable(input.path.string())));
}

}  // namespace hone::tuner
