#include "runtime/choose/result_checks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace hone {
namespace {

/// The host device reads a few megabytes a second in its slowest kernels.
constexpr std::int64_t kSmallBytes = std::int64_t{128} << 10;

constexpr std::int64_t kSmallestExtent = 4;

/// Half of it, odd or even as before; itself when that is too small.
std::int64_t halved(std::int64_t extent) {
  return extent < 2 * kSmallestExtent ? extent : (extent / 2 & ~std::int64_t{1}) | (extent & 1);
}

}  // namespace

std::vector<Problem> checked_problems(const Problem& problem, const Policy& policy, const Unit& unit) {
  std::vector<Problem> problems = problem.family->verifier().verified_problems(problem);
  std::erase_if(problems, [&](const Problem& each) {
    return !refusal_of(each).empty() || !each.family->is_served_by(each, policy, unit);
  });
  return problems;
}

std::vector<ResultCheck> result_checks(const Problem& problem, const Policy& policy, const Unit& unit) {
  const std::vector<Problem> problems = checked_problems(problem, policy, unit);
  std::vector<ResultCheck> checks;
  for (std::size_t kind = 0, found = 1; found > 0; ++kind) {
    found = 0;
    for (const Problem& each : problems) {
      const auto kinds = each.family->verifier().input_kinds(each);
      if (kind >= kinds.size()) continue;
      checks.push_back({each, kinds[kind]});
      ++found;
    }
  }
  return checks;
}

Problem small_problem(const DeviceFacts& facts, const Problem& problem, const Policy& policy) {
  const Unit unit = problem.family->unit(problem, policy);
  const auto serves = [&](const Problem& smaller) {
    return refusal_of(smaller).empty() && smaller.family->is_valid(smaller, policy, facts).empty() &&
           smaller.family->is_served_by(smaller, policy, unit);
  };
  Problem small = problem;
  while (small.family->bytes_moved(small) > kSmallBytes) {
    std::array<std::size_t, 3> axes{0, 1, 2};
    std::stable_sort(axes.begin(), axes.end(),
                     [&](std::size_t a, std::size_t b) { return small.extents[a] > small.extents[b]; });
    const auto shrinks = [&](std::size_t axis) {
      Problem smaller = small;
      smaller.extents[axis] = halved(small.extents[axis]);
      if (smaller.extents[axis] == small.extents[axis] || !serves(smaller)) return false;
      small = smaller;
      return true;
    };
    if (std::none_of(axes.begin(), axes.end(), shrinks)) break;
  }
  return small;
}

}  // namespace hone
