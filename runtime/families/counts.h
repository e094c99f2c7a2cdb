// Arithmetic of elements and bytes that all families need to describe a problem.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

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

/// Returns ⌈a / b⌉ of numbers that are not negative.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

constexpr std::int64_t at_least_one(std::int64_t count) { return std::max<std::int64_t>(1, count); }

/// The blocks of a grid of whole clusters, at most `max_blocks`, for so many blocks of work.
constexpr std::int64_t whole_clusters(std::int64_t max_blocks, std::int64_t blocks, std::int64_t cluster_blocks) {
  return at_least_one(std::min(max_blocks, blocks) / cluster_blocks) * cluster_blocks;
}

/// The smallest and the largest extent of a problem's class.
inline std::int64_t first_of(const Problem& problem, std::size_t extent) {
  return size_ranges(problem.extents)[extent].first;
}
inline std::int64_t last_of(const Problem& problem, std::size_t extent) {
  return size_ranges(problem.extents)[extent].last;
}

/// The power of two that an extent's size class lies around; 1 for 0 and 1.
inline std::int64_t center_of(const Problem& problem, std::size_t extent) {
  return class_center(size_classes(problem.extents)[extent]);
}

/// True if some member of the class has more than an `unsigned` counts: one stride of a whole grid goes beyond the last
/// element before a loop ends. 32-bit arithmetic is faster below.
inline bool needs_wide_index(const Problem& problem, std::size_t extent) {
  return last_of(problem, extent) > std::numeric_limits<std::int32_t>::max();
}

/// From one row of an array (0: in, 1: out) to the next, in elements.
inline std::int64_t pitch_of(const Problem& problem, std::size_t array, std::int64_t row_length) {
  return problem.pitches[array] != 0 ? problem.pitches[array] : row_length;
}

/// Pitches by the one name that each has: 0 where rows of such lengths lie side by side.
constexpr Pitches named_pitches(Pitches pitches, std::int64_t in_length, std::int64_t out_length) {
  return {pitches[0] == in_length ? 0 : pitches[0], pitches[1] == out_length ? 0 : pitches[1]};
}

/// Returns true if kernels are on the canonical tree (docs/numerics.md).
inline bool is_canonical(const Problem& problem) { return problem.numerics == Numerics::reproducible; }

/// The alignment, up to kMaxAlignment, of what lies so many elements behind the begin of arrays that are aligned to
/// `alignment` bytes.
inline std::uint32_t common_alignment(std::uint32_t alignment, std::int64_t element_bytes,
                                      std::initializer_list<std::int64_t> offsets) {
  std::uint64_t bits = alignment | kMaxAlignment;
  for (const std::int64_t offset : offsets)
    bits |= static_cast<std::uint64_t>(offset) * static_cast<std::uint64_t>(element_bytes);
  return 1u << std::countr_zero(bits);
}

/// The most elements of a pack that begins there.
inline std::int64_t aligned_elements(std::uint32_t alignment, std::int64_t element_bytes,
                                     std::initializer_list<std::int64_t> offsets) {
  return at_least_one(common_alignment(alignment, element_bytes, offsets) / element_bytes);
}

/// An element as a Number, and the element of a number: floats that are no builtin types are made of those of 32 bits.
template <class Number, class T>
Number number_of(T element) {
  if constexpr (std::is_class_v<T>) return static_cast<Number>(static_cast<float>(element));
  else return static_cast<Number>(element);
}
template <class T>
T element_of(double number) {
  if constexpr (std::is_class_v<T>) return T(static_cast<float>(number));
  else return static_cast<T>(number);
}

/// The values as they lie in memory.
template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Bytes of one element, and of one of the input.
inline std::int64_t bytes_of(DType dtype) { return static_cast<std::int64_t>(info(dtype).size_bytes); }
inline std::int64_t element_bytes(const Problem& problem) { return bytes_of(problem.dtype); }

}  // namespace hone
