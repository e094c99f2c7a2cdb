#include <hone/problem.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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

int octave(std::int64_t extent) {
  if (extent <= 1) return 0;
  const int exponent = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(extent))) - 1;
  return extent > last_of_class(exponent) ? exponent + 1 : exponent;
}

/// Of the octaves from 1 on.
SizeRange octave_range(int octave) {
  return {.first = last_of_class(octave - 1) + 1,
          .last = octave >= kLargestSizeClass ? std::numeric_limits<std::int64_t>::max() : last_of_class(octave)};
}

bool is_lone(const Extents& extents) { return extents[1] == 1 && extents[2] == 1; }

}  // namespace

std::uint32_t alignment_of(const void* pointer) {
  return 1u << std::countr_zero(reinterpret_cast<std::uintptr_t>(pointer) | kMaxAlignment);
}

int size_class(std::int64_t extent) { return std::max(octave(extent), kSmallestSizeClass); }

SizeRange size_range(int size_class) {
  return size_class <= kSmallestSizeClass ? SizeRange{0, last_of_class(kSmallestSizeClass)} : octave_range(size_class);
}

std::array<int, 3> size_classes(const Extents& extents) {
  if (is_lone(extents)) return {size_class(extents[0]), 0, 0};
  return {octave(extents[0]), octave(extents[1]), octave(extents[2])};
}

std::array<SizeRange, 3> size_ranges(const Extents& extents) {
  const auto range = [](std::int64_t extent) {
    return extent <= 1 ? SizeRange{extent, extent} : octave_range(octave(extent));
  };
  if (is_lone(extents)) return {size_range(size_class(extents[0])), SizeRange{1, 1}, SizeRange{1, 1}};
  return {range(extents[0]), range(extents[1]), range(extents[2])};
}

double shape_distance(const Extents& a, const Extents& b) {
  const auto octaves = [](std::int64_t extent) {
    return std::log2(static_cast<double>(std::max<std::int64_t>(extent, 1)));
  };
  return std::hypot(octaves(a[0]) - octaves(b[0]), octaves(a[1]) - octaves(b[1]), octaves(a[2]) - octaves(b[2]));
}

std::string shape_text(const Problem& problem) {
  const std::size_t count = problem.family->extent_names().size();
  std::string text;
  for (std::size_t i = count == 3 && problem.extents[0] == 1 ? 1 : 0; i < count; ++i)
    text += fmt::format("{}{}", text.empty() ? "" : "x", problem.extents[i]);
  return text;
}

std::string to_string(const Problem& problem) {
  std::string extents = fmt::format("n={}", problem.extents[0]);
  if (!is_lone(problem.extents)) extents += fmt::format("×{}", problem.extents[1]);
  if (problem.extents[2] != 1) extents += fmt::format("×{}", problem.extents[2]);
  std::string text = fmt::format("{} {} {} {}", problem.family->name(),
                                 problem.family->operations()[problem.operation], info(problem.dtype).name, extents);
  if (problem.accumulator) text += fmt::format(" in {}", info(*problem.accumulator).name);
  if (problem.result) text += fmt::format(" to {}", info(*problem.result).name);
  if (problem.nan == NanPolicy::ignore) text += " NaN ignored";
  if (problem.alignment < kMaxAlignment) text += fmt::format(" aligned to {}", problem.alignment);
  constexpr std::array<std::string_view, 2> kPitched{"input", "output"};
  for (std::size_t i = 0; i < kPitched.size(); ++i)
    if (problem.pitches[i] != 0) text += fmt::format(" {} pitch {}", kPitched[i], problem.pitches[i]);
  for (const std::optional<double>& scalar : problem.scalars)
    if (scalar) text += fmt::format(" with {}", *scalar);
  if (problem.launch_context == LaunchContext::graph) text += " in a graph";
  return text;
}

}  // namespace hone
