#include "runtime/families/reduce_axis/axis_verifier.h"

#include <algorithm>

#include "runtime/families/reduce/reduce_reference.h"
#include "runtime/families/reduce_axis/axis_family.h"

namespace hone {
namespace {

/// Elements that verifying one call reduces on the CPU, and the fewest outputs that it looks at even so.
constexpr std::int64_t kVerifiedElements = std::int64_t{1} << 15;
constexpr std::int64_t kFewestOutputs = 3;
constexpr std::int64_t kMostOutputs = 2048;
constexpr std::int64_t kRuns = 8;

}  // namespace

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
  // Where some repetition of the pattern ends.
  const std::int64_t odd = reduce_reference::kInputPeriod *
                               std::max<std::int64_t>(1, asked.elements() / reduce_reference::kInputPeriod * 2 / 3) -
                           1;
  const std::int64_t outer = std::min(odd / std::max<std::int64_t>(asked.outer_stride, 1), asked.outer - 1);
  const std::int64_t inner = odd % std::max<std::int64_t>(asked.outer_stride, 1) %
                             std::max<std::int64_t>(asked.inner == 1 ? 1 : asked.reduced_stride, 1);
  std::vector<ElementRange> parts =
      spread_runs(outputs, std::max<std::int64_t>(1, most / kRuns), std::min(most, kRuns),
                  {outer * asked.inner + std::min(inner, asked.inner - 1)});
  for (ElementRange& part : parts) part = {.first = part.first * values, .count = part.count * values};
  return parts;
}

std::string AxisVerifier::verify(const Problem& problem, const Candidate& candidate,
                                 std::span<const std::vector<std::byte>> patterns,
                                 std::span<const std::vector<std::byte>> outputs) const {
  const AxisLayout asked = family_.layout(problem);
  std::vector<ElementRange> results = verified_parts(problem, 1);
  for (ElementRange& part : results)
    part = {.first = part.first / values_of(problem), .count = part.count / values_of(problem)};
  const auto line_of = [&](std::int64_t output) {
    return reduce_reference::Line{
        .elements = asked.reduced, .first = asked.first_of(output), .stride = asked.reduced_stride};
  };
  return reduce_reference::verify_each(reduce_spec_of(problem), family_.longest_chain(problem, candidate), patterns[0],
                                       results, line_of, outputs[0]);
}

}  // namespace hone
