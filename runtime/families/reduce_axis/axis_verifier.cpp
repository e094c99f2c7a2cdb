// How the families of rows and of columns are verified.
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

std::vector<Problem> AxisFamily::verified_problems(const Problem& problem) const {
  std::vector<Problem> problems{problem};
  const auto add = [&](std::size_t extent, std::int64_t pitch) {
    if (problem.extents[extent] <= 1) return;
    Problem smaller = problem;
    --smaller.extents[extent];
    smaller.pitches[0] = pitch;
    problems.push_back(smaller);
  };
  const std::int64_t pitch = pitch_of(problem, 0, problem.extents[row_extent_]);
  for (std::size_t extent = 0; extent < 2; ++extent)
    if (extent != row_extent_) add(extent, problem.pitches[0]);
  add(row_extent_, pitch);
  if (problem.alignment < kMaxAlignment && problem.pitches[0] == 0) add(row_extent_, 0);
  return problems;
}

std::vector<ElementRange> AxisFamily::verified_lines(const Problem& problem) const {
  const AxisLayout asked = layout(problem);
  const std::int64_t outputs = asked.outputs();
  const std::int64_t each = std::clamp<std::int64_t>(asked.reduced, 1, reduce_reference::kInputPeriod);
  const std::int64_t most = std::clamp<std::int64_t>(kVerifiedElements / each, kFewestOutputs, kMostOutputs);
  if (outputs == 0) return {};
  // Where some repetition of the pattern ends.
  const std::int64_t odd =
      reduce_reference::kInputPeriod * at_least_one(asked.elements() / reduce_reference::kInputPeriod * 2 / 3) - 1;
  const std::int64_t outer = std::min(odd / std::max<std::int64_t>(asked.outer_stride, 1), asked.outer - 1);
  const std::int64_t inner = odd % std::max<std::int64_t>(asked.outer_stride, 1) %
                             std::max<std::int64_t>(asked.inner == 1 ? 1 : asked.reduced_stride, 1);
  return spread_runs(outputs, at_least_one(most / kRuns), std::min(most, kRuns),
                     {outer * asked.inner + std::min(inner, asked.inner - 1)});
}

std::function<LinesVerifier::Line(std::int64_t)> AxisFamily::lines(const Problem& problem, ArrayBytes) const {
  return [asked = layout(problem)](std::int64_t output) {
    return Line{.elements = asked.reduced, .first = asked.first_of(output), .stride = asked.reduced_stride};
  };
}

}  // namespace hone
