#include <hone/problem_class.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include <hone/kernel_family.h>

namespace hone {
namespace {

std::string_view dtype_name(std::optional<DType> dtype) {
  return dtype ? info(*dtype).name : std::string_view("the family's choice");
}

std::string_view nan_name(NanPolicy nan) { return nan == NanPolicy::ignore ? "ignore" : "propagate"; }

std::string range_text(const SizeRange& range) { return fmt::format("{} … {}", range.first, range.last); }

}  // namespace

ProblemClass::ProblemClass(const Problem& member) : typical_(member), sizes_(size_ranges(member.extents)) {
  const std::array<int, 3> classes = size_classes(member.extents);
  for (std::size_t i = 0; i < sizes_.size(); ++i)
    typical_.extents[i] = std::clamp(class_center(classes[i]), sizes_[i].first, sizes_[i].last);
  typical_.pitches = {};
  typical_.scalars = {};
}

std::vector<Problem> ProblemClass::corners() const {
  std::vector<Problem> corners{typical_};
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    std::vector<Problem> longer;
    for (const Problem& corner : corners) {
      longer.emplace_back(corner).extents[i] = sizes_[i].first;
      if (sizes_[i].last != sizes_[i].first) longer.emplace_back(corner).extents[i] = sizes_[i].last;
    }
    corners = std::move(longer);
  }
  return corners;
}

bool ProblemClass::operator==(const ProblemClass& other) const {
  const Problem &a = typical_, &b = other.typical_;
  return a.family == b.family && a.operation == b.operation && a.dtype == b.dtype && a.accumulator == b.accumulator &&
         a.result == b.result && a.numerics == b.numerics && a.nan == b.nan && a.alignment == b.alignment &&
         a.launch_context == b.launch_context && sizes_ == other.sizes_;
}

std::string ProblemClass::difference(const ProblemClass& other) const {
  const Problem &a = typical_, &b = other.typical_;
  std::string text;
  const auto compare = [&](std::string_view what, const auto& mine, const auto& theirs, const auto& spell) {
    if (!(mine == theirs))
      text += fmt::format("{}the {} is {}, not {}", text.empty() ? "" : "; ", what, spell(mine), spell(theirs));
  };
  if (a.family != b.family)
    return a.family->name() == b.family->name()
               ? fmt::format("the family is another one with the name {}", a.family->name())
               : fmt::format("the family is {}, not {}", a.family->name(), b.family->name());
  compare("operation", a.operation, b.operation, [&](std::uint8_t operation) {
    return a.family->operations()[operation];
  });
  compare("dtype", std::optional(a.dtype), std::optional(b.dtype), dtype_name);
  compare("accumulator", a.accumulator, b.accumulator, dtype_name);
  compare("result", a.result, b.result, dtype_name);
  compare("NaN policy", a.nan, b.nan, nan_name);
  compare("numerics", a.numerics, b.numerics, [](Numerics numerics) { return name(numerics); });
  compare("alignment", a.alignment, b.alignment, [](std::uint32_t bytes) { return fmt::format("{} bytes", bytes); });
  compare("launch context", a.launch_context, b.launch_context, [](LaunchContext context) { return name(context); });
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const auto names = a.family->extent_names();
    const std::string what = i < names.size() ? fmt::format("size class of {}", names[i]) : fmt::format("extent {}", i);
    compare(what, sizes_[i], other.sizes_[i], range_text);
  }
  return text;
}

std::string to_string(const ProblemClass& problem_class) {
  std::string text = to_string(problem_class.typical());
  if (const std::size_t extents = text.find("n="); extents != std::string::npos) text.replace(extents, 2, "n≈");
  return text;
}

}  // namespace hone
