#include <hone/problem.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

#include <hone/kernel_family.h>

namespace hone {
namespace {

/// ⌊2^(eighths ÷ 8)⌋, below 2^63. What is no whole power of two is irrational, so that no extent lies on a border.
constexpr std::int64_t two_to_eighths(int eighths) {
  constexpr std::array<std::uint64_t, 8> kTimes2To63{0x8000000000000000u, 0x8B95C1E3EA8BD6E6u, 0x9837F0518DB8A96Fu,
                                                     0xA5FED6A9B15138EAu, 0xB504F333F9DE6484u, 0xC5672A115506DADDu,
                                                     0xD744FCCAD69D6AF4u, 0xEAC0C6E7DD24392Eu};
  return static_cast<std::int64_t>(kTimes2To63[static_cast<std::size_t>(eighths % 8)] >> (63 - eighths / 8));
}

/// How far a class reaches to both sides of its center, in eighths of an octave, and how far two are apart, in classes:
/// a lone extent's are a quarter of an octave wide, those of shapes a whole one.
enum class Reach : int { lone = 1, shape = kClassesPerOctave };

int class_of(std::int64_t extent, Reach reach) {
  if (extent <= 1) return 0;
  const int exponent = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(extent))) - 1;
  const int border = static_cast<int>(reach);
  const int next_power = kClassesPerOctave * (exponent + 1);
  int size_class = kClassesPerOctave * exponent;
  while (size_class < next_power && extent > two_to_eighths(2 * size_class + border)) size_class += border;
  return size_class;
}

/// Holds for the classes from 1 on.
SizeRange range_of(int size_class, Reach reach) {
  const int border = static_cast<int>(reach);
  return {.first = two_to_eighths(2 * size_class - border) + 1,
          .last = size_class >= kLargestSizeClass ? std::numeric_limits<std::int64_t>::max()
                                                  : two_to_eighths(2 * size_class + border)};
}

bool is_lone(const Extents& extents) { return extents[1] == 1 && extents[2] == 1; }

}  // namespace

std::uint32_t alignment_of(const void* pointer) {
  return 1u << std::countr_zero(reinterpret_cast<std::uintptr_t>(pointer) | kMaxAlignment);
}

int size_class(std::int64_t extent) { return std::max(class_of(extent, Reach::lone), kSmallestSizeClass); }

SizeRange size_range(int size_class) {
  SizeRange range = range_of(std::max(size_class, kSmallestSizeClass), Reach::lone);
  if (size_class <= kSmallestSizeClass) range.first = 0;
  return range;
}

std::int64_t class_center(int size_class) { return two_to_eighths(2 * std::min(size_class, kLargestSizeClass - 1)); }

std::array<int, 3> size_classes(const Extents& extents) {
  if (is_lone(extents)) return {size_class(extents[0]), 0, 0};
  std::array<int, 3> classes{};
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = class_of(extents[i], Reach::shape);
  return classes;
}

std::array<SizeRange, 3> size_ranges(const Extents& extents) {
  const auto range = [](std::int64_t extent) {
    return extent <= 1 ? SizeRange{extent, extent} : range_of(class_of(extent, Reach::shape), Reach::shape);
  };
  if (is_lone(extents)) return {size_range(size_class(extents[0])), SizeRange{1, 1}, SizeRange{1, 1}};
  return {range(extents[0]), range(extents[1]), range(extents[2])};
}

bool is_empty_class(const Extents& extents) {
  return !is_lone(extents) && std::find(extents.begin(), extents.end(), 0) != extents.end();
}

bool is_within(const Extents& extents, const std::array<SizeRange, 3>& ranges) {
  for (std::size_t i = 0; i < extents.size(); ++i)
    if (extents[i] < ranges[i].first || extents[i] > ranges[i].last) return false;
  return true;
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
  if (!problem.family) return "a Problem without a family";
  std::string extents = fmt::format("n={}", problem.extents[0]);
  if (!is_lone(problem.extents)) extents += fmt::format("×{}", problem.extents[1]);
  if (problem.extents[2] != 1) extents += fmt::format("×{}", problem.extents[2]);
  std::string text = fmt::format("{} {} {} {}", problem.family->name(),
                                 problem.family->operations()[problem.operation], info(problem.dtype).name, extents);
  if (problem.accumulator) text += fmt::format(" in {}", info(*problem.accumulator).name);
  if (problem.result) text += fmt::format(" to {}", info(*problem.result).name);
  if (problem.numerics != Numerics::fast) text.append(" ").append(name(problem.numerics));
  if (problem.nan == NanPolicy::ignore) text += " NaN ignored";
  if (problem.alignment < kMaxAlignment) text += fmt::format(" aligned to {}", problem.alignment);
  constexpr std::array<std::string_view, 2> kPitched{"input", "output"};
  for (std::size_t i = 0; i < kPitched.size(); ++i)
    if (problem.pitches[i] != 0) text += fmt::format(" {} pitch {}", kPitched[i], problem.pitches[i]);
  const std::span<const std::string_view> names = problem.family->scalar_names();
  for (std::size_t i = 0; i < problem.scalars.size(); ++i)
    if (const auto& scalar = problem.scalars[i])
      text += i < names.size() ? fmt::format(" {}={}", names[i], *scalar) : fmt::format(" with {}", *scalar);
  if (problem.launch_context == LaunchContext::graph) text += " in a graph";
  return text;
}

}  // namespace hone
