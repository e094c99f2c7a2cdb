#include <hone/problem.h>

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include <hone/kernel_family.h>

namespace hone {
namespace {

/// ⌊2^(exponent + ½)⌋, the last extent of class `exponent`. √2 is irrational, so no extent lies on the border.
constexpr std::int64_t last_of_class(int exponent) {
  constexpr std::uint64_t kSqrt2Times2To63 = 0xB504F333F9DE6484u;
  return static_cast<std::int64_t>(kSqrt2Times2To63 >> (63 - exponent));
}

}  // namespace

std::uint32_t alignment_of(const void* pointer) {
  return 1u << std::countr_zero(reinterpret_cast<std::uintptr_t>(pointer) | kMaxAlignment);
}

int size_class(std::int64_t extent) {
  if (extent <= last_of_class(kSmallestSizeClass)) return kSmallestSizeClass;
  const int exponent = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(extent))) - 1;
  return extent > last_of_class(exponent) ? exponent + 1 : exponent;
}

SizeRange size_range(int size_class) {
  return {.first = size_class <= kSmallestSizeClass ? 0 : last_of_class(size_class - 1) + 1,
          .last = size_class >= kLargestSizeClass ? std::numeric_limits<std::int64_t>::max() : last_of_class(size_class)};
}

std::string to_string(const Problem& problem) {
  std::string extents = fmt::format("n={}", problem.extents[0]);
  for (std::size_t i = 1; i < problem.extents.size(); ++i)
    if (problem.extents[i] != 1) extents += fmt::format("×{}", problem.extents[i]);
  std::string text = fmt::format("{} {} {} {}", problem.family->name(),
                                 problem.family->operations()[problem.operation], info(problem.dtype).name, extents);
  if (problem.accumulator) text += fmt::format(" in {}", info(*problem.accumulator).name);
  if (problem.result) text += fmt::format(" to {}", info(*problem.result).name);
  if (problem.nan == NanPolicy::ignore) text += " NaN ignored";
  if (problem.alignment < kMaxAlignment) text += fmt::format(" aligned to {}", problem.alignment);
  if (problem.launch_context == LaunchContext::graph) text += " in a graph";
  return text;
}

}  // namespace hone
