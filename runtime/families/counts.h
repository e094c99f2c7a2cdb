// Arithmetic of elements and bytes that all families need to describe a problem.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include <hone/problem.h>

namespace hone {

/// Beyond any address space, and far enough from the largest integer that sums of byte counts do not overflow.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

/// The product of counts that are not negative; nullopt where it exceeds kMostBytes.
inline std::optional<std::int64_t> product_within_memory(std::initializer_list<std::int64_t> counts) {
  std::int64_t result = 1;
  for (const std::int64_t count : counts)
    if (__builtin_mul_overflow(result, count, &result)) return std::nullopt;
  return result <= kMostBytes ? std::optional(result) : std::nullopt;
}

/// Of numbers that are not negative.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

/// Bytes of one element of the input.
inline std::int64_t element_bytes(const Problem& problem) {
  return static_cast<std::int64_t>(info(problem.dtype).size_bytes);
}

}  // namespace hone
