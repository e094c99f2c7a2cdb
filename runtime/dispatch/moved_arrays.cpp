#include "runtime/dispatch/moved_arrays.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/kernel_family.h>

namespace hone {

void MovedArrays::refuse(const std::string& why) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", function, why));
}

void MovedArrays::check() const {
  if (!std::has_single_bit(element_bytes) || element_bytes > 16)
    refuse(fmt::format("elements of {} bytes; there are those of 1, 2, 4, 8 and 16", element_bytes));
  for (const auto& [name, pointer] : {std::pair<std::string_view, const void*>{"in", in}, {"out", out}}) {
    if (!pointer) refuse(fmt::format("'{}' is null; pass device memory", name));
    const std::size_t alignment = std::min<std::size_t>(element_bytes, 8);
    if (reinterpret_cast<std::uintptr_t>(pointer) % alignment != 0)
      refuse(fmt::format("'{}' at {} is not aligned to {} bytes, as its {}-byte elements are", name, pointer, alignment,
                         element_bytes));
  }
}

void MovedArrays::check(const Problem& problem) const {
  if (const std::string refusal = problem.family->refuse(problem); !refusal.empty()) refuse(refusal);
}

void MovedArrays::check_apart(std::int64_t in_elements, std::int64_t out_elements) const {
  const auto first = reinterpret_cast<std::uintptr_t>(in), second = reinterpret_cast<std::uintptr_t>(out);
  const auto in_bytes = static_cast<std::size_t>(in_elements) * element_bytes;
  const auto out_bytes = static_cast<std::size_t>(out_elements) * element_bytes;
  if (first < second + out_bytes && second < first + in_bytes)
    refuse(fmt::format("'out', {} bytes at {}, overlaps 'in', {} bytes at {}", out_bytes, out, in_bytes, in));
}

std::uint32_t MovedArrays::alignment() const { return std::min(alignment_of(in), alignment_of(out)); }

bool is_empty(const MovedArrays& arrays, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  if (std::min({batch, rows, columns}) < 0)
    arrays.refuse(fmt::format("{} × {} × {} elements; an extent cannot be negative", batch, rows, columns));
  return std::min({batch, rows, columns}) == 0;
}

}  // namespace hone
