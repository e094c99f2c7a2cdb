#include "runtime/dispatch/moved_arrays.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace hone {

bool is_empty(std::string_view function, std::size_t element_bytes, const Extents& extents) {
  const std::int64_t least = *std::min_element(extents.begin(), extents.end());
  if (least < 0)
    refuse_call(function, fmt::format("{} × {} × {} elements; no extent can be negative", extents[0], extents[1],
                                      extents[2]));
  if (least > 0 && (!std::has_single_bit(element_bytes) || element_bytes > 16))
    refuse_call(function,
                fmt::format("elements of {} bytes; there are those of 1, 2, 4, 8 and 16", element_bytes));
  return least == 0;
}

void check_arrays(const Call& call, const void* in, const void* out) {
  call.check_array("in", in, call.problem.dtype);
  call.check_array("out", out, call.problem.dtype);
  call.check_problem();
}

void check_apart(const Call& call, const void* in, const void* out) {
  call.check_apart("in", rows_of(call.problem, 0, in), "out", rows_of(call.problem, 1, out));
}

}  // namespace hone
