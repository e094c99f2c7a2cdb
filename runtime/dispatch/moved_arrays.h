// MovedArrays: what tuned_copy() and tuned_transpose() check of their arguments on every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <hone/problem.h>

namespace hone {

/// The two arrays of a call, and who asks. Checks throw Error(invalid_argument) that names the function.
struct MovedArrays {
  std::string_view function;
  std::size_t element_bytes;
  const void* in;
  const void* out;

  [[noreturn]] void refuse(const std::string& why) const;

  /// Neither is null, and both are aligned to their elements, which have 1, 2, 4, 8 or 16 bytes.
  void check() const;

  /// The family takes the problem: pitches are no part of what finds a plan, so a hit does not say that they fit.
  void check(const Problem& problem) const;

  /// Arrays of so many elements share no byte.
  void check_apart(std::int64_t in_elements, std::int64_t out_elements) const;

  /// Of both addresses.
  std::uint32_t alignment() const;
};

/// Whether any extent of a call is 0; a negative one is refused.
bool is_empty(const MovedArrays& arrays, std::int64_t batch, std::int64_t rows, std::int64_t columns);

}  // namespace hone
