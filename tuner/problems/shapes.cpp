#include "tuner/problems/shapes.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "tuner/text/command_error.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

constexpr std::string_view kSeparators = ", \t\n";

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw CommandError(
      ExitCode::usage,
      fmt::format("'{}' is not a shape: {}. Shapes are extents with an x between them, such as 2^13x2^13, "
                  "2^10..2^20:4x64 or 8/64x2^20",
                  printable(text), why));
}

/// "8 × 64" as "8x64": every "×" is an x, and what is blank around an x, a / or an @ is left out.
std::string without_gaps(std::string_view text) {
  constexpr std::string_view kTimes = "×";
  std::string joined;
  for (std::size_t i = 0; i < text.size();) {
    const bool is_times = text.substr(i).starts_with(kTimes);
    joined.push_back(is_times ? 'x' : text[i]);
    i += is_times ? kTimes.size() : 1;
  }
  constexpr std::string_view kJoining = "x/@";
  std::string result;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    const bool is_blank = joined[i] == ' ' || joined[i] == '\t';
    const std::size_t next = joined.find_first_not_of(" \t", i);
    const bool joins_next = next != std::string::npos && kJoining.find(joined[next]) != std::string_view::npos;
    const bool joins_last = !result.empty() && kJoining.find(result.back()) != std::string_view::npos;
    if (!is_blank || !(joins_next || joins_last)) result.push_back(joined[i]);
  }
  return result;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct Range {
  std::int64_t first = 1;
  std::int64_t last = 1;
};

/// "A..B", or nullopt where there are no two dots.
std::optional<Range> parse_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const Range range{parse_size(text.substr(0, dots)), parse_size(text.substr(dots + 2))};
  if (range.first <= range.last) return range;
  throw CommandError(ExitCode::usage,
                     fmt::format("the range '{}' is empty: {} is larger than {}; swap its ends", printable(text),
                                 text.substr(0, dots), text.substr(dots + 2)));
}

void append_sizes(std::string_view text, std::vector<std::int64_t>& sizes) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::optional<Range> range = parse_range(text.substr(0, colon));
  if (!range && colon < text.size()) refuse(text, "':' gives the factor between the sizes of a range A..B");
  if (!range) return sizes.push_back(parse_size(text));
  const std::int64_t factor = colon < text.size() ? parse_size(text.substr(colon + 1)) : 2;
  if (factor < 2) refuse(text, "the sizes of a range differ by a factor of 2 at least");
  for (std::int64_t size = range->first; size <= range->last; size *= factor) {
    sizes.push_back(size);
    if (size > range->last / factor) break;
  }
}

std::vector<std::int64_t> parse_extent(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (const std::string_view part : split(text, '/')) append_sizes(part, sizes);
  return sizes;
}

/// nullopt beyond kMaxSize.
std::optional<std::int64_t> count_elements(std::span<const std::int64_t> shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent > kMaxSize / elements) return std::nullopt;
    elements *= extent;
  }
  return elements;
}

void append_shapes(std::string_view text, std::vector<TypedShape>& shapes) {
  const std::size_t at = std::min(text.find('@'), text.size());
  std::optional<Range> bound;
  if (at < text.size()) {
    bound = parse_range(text.substr(at + 1));
    if (!bound) bound = Range{1, parse_size(text.substr(at + 1))};
  }
  const std::vector<std::string_view> extents = split(text.substr(0, at), 'x');
  if (std::find(extents.begin(), extents.end(), std::string_view{}) != extents.end())
    refuse(text, "an extent is missing");
  if (extents.size() > 1 && extents.front() == "0")
    refuse(text, "its first extent is 0 (an x stands between extents: there are no hexadecimal sizes)");
  if (extents.size() > 3)
    refuse(text, fmt::format("it has {} extents, and no kernel has more than three", extents.size()));
  std::vector<TypedShape> all{{}};
  for (const std::string_view extent : extents) {
    const std::vector<std::int64_t> sizes = parse_extent(extent);
    if (all.size() * sizes.size() > kMostShapes)
      refuse(text,
             fmt::format("it stands for more than {} shapes; take larger steps, such as 2^10..2^20:4", kMostShapes));
    std::vector<TypedShape> longer;
    for (const TypedShape& shape : all)
      for (const std::int64_t size : sizes) {
        longer.push_back(shape);
        longer.back().push_back(size);
      }
    all = std::move(longer);
  }
  for (TypedShape& shape : all) {
    const std::optional<std::int64_t> elements = count_elements(shape);
    if (!elements && !bound)
      refuse(text, "it has beyond 2^53 elements, more than any device holds; a bound leaves such out: …@2^28");
    const bool is_within = !bound || (elements && *elements >= bound->first && *elements <= bound->last);
    if (is_within) shapes.push_back(std::move(shape));
  }
}

}  // namespace

std::vector<std::int64_t> parse_array_shape(std::string_view text) {
  const std::string joined = without_gaps(text);
  std::vector<std::int64_t> shape;
  for (const std::string_view extent : split(joined, 'x')) shape.push_back(extent == "0" ? 0 : parse_size(extent));
  if (count_elements(shape)) return shape;
  throw CommandError(ExitCode::usage,
                     fmt::format("an array of the shape '{}' has beyond 2^53 elements", printable(text)));
}

std::vector<TypedShape> parse_shapes(std::string_view text) {
  const std::string joined = without_gaps(text);
  const std::string_view list = joined;
  std::vector<TypedShape> shapes;
  bool is_empty = true;
  for (std::size_t begin = list.find_first_not_of(kSeparators); begin != std::string_view::npos;) {
    const std::size_t end = std::min(list.find_first_of(kSeparators, begin), list.size());
    append_shapes(list.substr(begin, end - begin), shapes);
    is_empty = false;
    begin = list.find_first_not_of(kSeparators, end);
  }
  if (is_empty) parse_size(text);  // says what a size is
  if (shapes.empty()) refuse(text, "no shape has as many elements as its bound asks for");
  std::sort(shapes.begin(), shapes.end());
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

std::optional<Extents> extents_of(const TypedShape& shape, std::size_t count) {
  const std::size_t first = count == 3 && shape.size() == 2 ? 1 : 0;
  if (first + shape.size() != count) return std::nullopt;
  Extents extents{1, 1, 1};
  std::copy(shape.begin(), shape.end(), extents.begin() + static_cast<std::ptrdiff_t>(first));
  return extents;
}

std::string format_shape(const Extents& extents, std::size_t count) {
  std::string text;
  for (std::size_t i = count == 3 && extents[0] == 1 ? 1 : 0; i < count; ++i)
    text.append(text.empty() ? "" : "x").append(format_size(extents[i]));
  return text;
}

std::string format_shape(const Problem& problem) {
  return format_shape(problem.extents, problem.family->extent_names().size());
}

}  // namespace hone::tuner
