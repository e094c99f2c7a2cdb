#include "tuner/problems/problem_text.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/kernel_family.h>

#include <algorithm>
#include <string_view>

#include "tuner/problems/shapes.h"

namespace hone::tuner {
namespace {

std::optional<DType> dtype_called(std::string_view word) {
  const auto found = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& row) { return row.name == word; });
  if (found == kDTypes.end()) return std::nullopt;
  return found->dtype;
}

/// Takes the word behind `mark` off the end of `text`: "f16 in f64" gives "f64" for " in ".
std::string take_suffix(std::string& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return {};
  std::string word = text.substr(at + mark.size());
  text.resize(at);
  return word;
}

/// Sets the dtypes that a row's column spells: "i32", "f16 in f64 to f16".
bool read_dtypes(std::string text, Problem& problem) {
  const std::string result = take_suffix(text, " to ");
  const std::string accumulator = take_suffix(text, " in ");
  const std::optional<DType> dtype = dtype_called(text);
  if (!dtype) return false;
  problem.dtype = *dtype;
  problem.accumulator = dtype_called(accumulator);
  problem.result = dtype_called(result);
  return accumulator.empty() == !problem.accumulator && result.empty() == !problem.result;
}

/// Sets what a row's column spells: "fast", "reproducible, NaN ignored".
bool read_numerics(std::string_view text, Problem& problem) {
  constexpr std::string_view kIgnored = ", NaN ignored";
  if (text.ends_with(kIgnored)) {
    problem.nan = NanPolicy::ignore;
    text.remove_suffix(kIgnored.size());
  }
  const auto found = std::find(kNumericsNames.begin(), kNumericsNames.end(), text);
  if (found == kNumericsNames.end()) return false;
  problem.numerics = static_cast<Numerics>(found - kNumericsNames.begin());
  return true;
}

/// The problem of `family` and these extents that a row's other columns describe; nullopt where they describe none.
std::optional<Problem> problem_of(const cache::ProblemRecord& record, const Extents& extents,
                                  const KernelFamily& family) {
  const auto operations = family.operations();
  const auto operation = std::find(operations.begin(), operations.end(), record.operation);
  Problem problem{.family = &family, .extents = extents};
  if (operation == operations.end() || !read_dtypes(record.dtype, problem)) return std::nullopt;
  problem.operation = static_cast<std::uint8_t>(operation - operations.begin());
  problem.alignment = static_cast<std::uint32_t>(record.alignment);
  if (!read_numerics(record.numerics, problem)) return std::nullopt;
  const auto context = std::find(kLaunchContextNames.begin(), kLaunchContextNames.end(), record.launch_context);
  if (context == kLaunchContextNames.end()) return std::nullopt;
  problem.launch_context = static_cast<LaunchContext>(context - kLaunchContextNames.begin());
  if (!refusal_of(problem).empty()) return std::nullopt;
  return problem;
}

}  // namespace

std::optional<Problem> problem_of(const cache::ProblemRecord& record, const Extents& extents, Families families) {
  const FamilyRow* row = find_family(record.family, families);
  return row ? problem_of(record, extents, row->family()) : std::nullopt;
}

bool is_described(const Problem& problem, const cache::ProblemRecord& record) {
  if (problem.family->name() != record.family) return false;
  for (std::size_t axis = 0; axis < record.sizes.size(); ++axis)
    if (problem.extents[axis] < record.sizes[axis].first || problem.extents[axis] > record.sizes[axis].last)
      return false;
  const std::optional<Problem> described = problem_of(record, problem.extents, *problem.family);
  return described && same_sweep(problem, *described);
}

namespace {

std::string label(const Problem& problem, std::string_view shape) {
  const KernelFamily& family = *problem.family;
  const std::string_view operation = family.operations()[problem.operation];
  std::string label;
  if (&family != &built_in_families().front().family() && family.name() != operation)
    label.append(family.name()).append(" ");
  label += fmt::format("{} {}", operation, info(problem.dtype).name);
  if (!shape.empty()) label.append(" ").append(shape);
  if (problem.accumulator) label += fmt::format(" in {}", info(*problem.accumulator).name);
  if (problem.result) label += fmt::format(" to {}", info(*problem.result).name);
  if (problem.numerics != Numerics::fast) label.append(" ").append(name(problem.numerics));
  if (problem.nan == NanPolicy::ignore) label += " NaN ignored";
  if (problem.alignment != kMaxAlignment) label += fmt::format(" align {}", problem.alignment);
  if (problem.pitches != Pitches{}) label += fmt::format(" pitch {}", fmt::join(problem.pitches, ","));
  if (problem.launch_context == LaunchContext::graph) label += " graph";
  return label;
}

}  // namespace

std::string sweep_label(const Problem& problem) { return label(problem, {}); }

std::string problem_label(const Problem& problem) { return label(problem, format_shape(problem)); }

bool same_sweep(const Problem& a, const Problem& b) {
  return a.family == b.family && a.operation == b.operation && a.dtype == b.dtype && a.accumulator == b.accumulator &&
         a.result == b.result && a.numerics == b.numerics && a.nan == b.nan && a.alignment == b.alignment &&
         a.launch_context == b.launch_context;
}

}  // namespace hone::tuner
