#include "runtime/families/reduce_axis/axis_verifier.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/reduce_axis/axis_family.h"

namespace hone {
namespace {

/// Elements that verifying one call reduces on the CPU, and the fewest outputs that it looks at even so.
constexpr std::int64_t kVerifiedElements = std::int64_t{1} << 15;
constexpr std::int64_t kFewestOutputs = 3;
constexpr std::int64_t kMostOutputs = 2048;
constexpr std::int64_t kRuns = 8;

/// The elements of one output, for as long as they differ from those before.
std::vector<std::byte> elements_of(const AxisLayout& layout, std::int64_t output, std::span<const std::byte> pattern,
                                   std::size_t element_bytes) {
  const auto period = static_cast<std::int64_t>(pattern.size() / element_bytes);
  const std::int64_t count = std::min(layout.reduced, period);
  std::vector<std::byte> elements(static_cast<std::size_t>(count) * element_bytes);
  if (count == 0) return elements;
  std::int64_t at = layout.first_of(output) % period;
  const std::int64_t step = layout.reduced_stride % period;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(elements.data() + static_cast<std::size_t>(i) * element_bytes,
                pattern.data() + static_cast<std::size_t>(at) * element_bytes, element_bytes);
    at += step;
    if (at >= period) at -= period;
  }
  return elements;
}

}  // namespace

std::span<const std::string_view> AxisVerifier::input_kinds(const Problem& problem) const {
  return reduce_reference::input_kinds(reduce_spec_of(problem));
}

std::vector<std::byte> AxisVerifier::input_pattern(const Problem& problem, int buffer, std::string_view kind) const {
  return reduce_reference::input_pattern(reduce_spec_of(problem), buffer, family_.layout(problem).elements(), kind);
}

/// One less of each extent: where the last row ends early, rows that begin elsewhere, and a gap behind each row.
std::vector<Problem> AxisVerifier::verified_problems(const Problem& problem) const {
  std::vector<Problem> problems{problem};
  const auto add = [&](std::size_t extent, std::int64_t pitch) {
    if (problem.extents[extent] <= 1) return;
    Problem smaller = problem;
    --smaller.extents[extent];
    smaller.pitches[0] = pitch;
    problems.push_back(smaller);
  };
  const std::int64_t pitch = problem.pitches[0] != 0 ? problem.pitches[0] : problem.extents[family_.row_extent()];
  for (std::size_t extent = 0; extent < 2; ++extent)
    if (extent != family_.row_extent()) add(extent, problem.pitches[0]);
  add(family_.row_extent(), pitch);
  if (problem.alignment < kMaxAlignment && problem.pitches[0] == 0) add(family_.row_extent(), 0);
  return problems;
}

/// Runs of neighbouring outputs: the first, the last, those at the end of the pattern, where the odd elements are, and
/// some in between.
std::vector<ElementRange> AxisVerifier::verified_parts(const Problem& problem, int) const {
  const AxisLayout asked = family_.layout(problem);
  const std::int64_t outputs = asked.outputs();
  const std::int64_t values = values_of(problem);
  const std::int64_t each = std::clamp<std::int64_t>(asked.reduced, 1, reduce_reference::kInputPeriod);
  const std::int64_t most = std::clamp<std::int64_t>(kVerifiedElements / each, kFewestOutputs, kMostOutputs);
  if (outputs == 0) return {};
  if (outputs <= most) return {{.first = 0, .count = outputs * values}};

  const std::int64_t length = std::max<std::int64_t>(1, most / kRuns);
  std::vector<std::int64_t> firsts{0, outputs - length};
  std::mt19937_64 random(static_cast<std::uint64_t>(outputs));
  const auto odd = reduce_reference::kInputPeriod *
                       std::uniform_int_distribution<std::int64_t>(
                           1, std::max<std::int64_t>(1, asked.elements() / reduce_reference::kInputPeriod))(random) -
                   1;
  const std::int64_t outer = std::min(odd / std::max<std::int64_t>(asked.outer_stride, 1), asked.outer - 1);
  const std::int64_t inner = odd % std::max<std::int64_t>(asked.outer_stride, 1) %
                             std::max<std::int64_t>(asked.inner == 1 ? 1 : asked.reduced_stride, 1);
  firsts.push_back(std::min(outer * asked.inner + std::min(inner, asked.inner - 1), outputs - length));
  while (static_cast<std::int64_t>(firsts.size()) < std::min(most, kRuns))
    firsts.push_back(std::uniform_int_distribution<std::int64_t>(0, outputs - length)(random));

  std::sort(firsts.begin(), firsts.end());
  std::vector<ElementRange> parts;
  std::int64_t end = 0;
  for (const std::int64_t first : firsts) {
    const std::int64_t begin = std::max(first, end);
    if (begin >= first + length) continue;
    parts.push_back({.first = begin * values, .count = (first + length - begin) * values});
    end = first + length;
  }
  return parts;
}

std::string AxisVerifier::verify(const Problem& problem, const Candidate& candidate,
                                 std::span<const std::vector<std::byte>> patterns,
                                 std::span<const std::vector<std::byte>> outputs) const {
  const ReduceSpec spec = reduce_spec_of(problem);
  const AxisLayout asked = family_.layout(problem);
  const std::int64_t values = values_of(problem);
  const std::size_t result_bytes = static_cast<std::size_t>(values) * info(spec.result_dtype()).size_bytes;
  const std::int64_t chain = family_.longest_chain(problem, candidate);
  std::span<const std::byte> found = outputs[0];
  for (const ElementRange& part : verified_parts(problem, 1)) {
    for (std::int64_t output = part.first / values; output < (part.first + part.count) / values; ++output) {
      const std::vector<std::vector<std::byte>> elements{
          elements_of(asked, output, patterns[0], info(problem.dtype).size_bytes)};
      const std::string fault =
          reduce_reference::verify(spec, asked.reduced, chain, elements, found.first(result_bytes));
      if (!fault.empty()) return fmt::format("result {} of {}: {}", output, asked.outputs(), fault);
      found = found.subspan(result_bytes);
    }
  }
  return "";
}

}  // namespace hone
