#include "runtime/dispatch/moved_arrays.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "runtime/families/moved_elements.h"

namespace hone {

bool is_empty(std::string_view function, std::size_t element_bytes, const Extents& extents) {
  const std::int64_t least = *std::min_element(extents.begin(), extents.end());
  if (least < 0)
    refuse_call(function, fmt::format("{} × {} × {} elements; an extent cannot be negative", extents[0], extents[1],
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
  const auto& family = static_cast<const moved::MovedFamily&>(*call.problem.family);
  const auto element_bytes = static_cast<std::int64_t>(info(call.problem.dtype).size_bytes);
  const auto in_bytes = static_cast<std::uintptr_t>(family.rows(call.problem, 0).elements() * element_bytes);
  const auto out_bytes = static_cast<std::uintptr_t>(family.rows(call.problem, 1).elements() * element_bytes);
  const auto first = reinterpret_cast<std::uintptr_t>(in), second = reinterpret_cast<std::uintptr_t>(out);
  if (first < second + out_bytes && second < first + in_bytes)
    call.refuse(fmt::format("'out', {} bytes at {}, overlaps 'in', {} bytes at {}", out_bytes, out, in_bytes, in));
}

}  // namespace hone
