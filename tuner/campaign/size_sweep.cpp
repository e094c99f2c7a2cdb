#include "tuner/campaign/size_sweep.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include <hone/kernel_family.h>
#include <hone/sdk/portfolio.h>

namespace hone::tuner {
namespace {

/// Takes the rows between two tuned ones.
void choose_measured(std::span<SweepRow> gap) {
  for (SweepRow& row : gap) row.is_measured = false;
  const std::size_t count = std::min(kMostBetween, gap.size());
  for (std::size_t i = 1; i <= count; ++i) {
    SweepRow& row = gap[i * (gap.size() + 1) / (count + 1) - 1];
    row.is_measured = true;
    row.is_center = i == (count + 1) / 2;
  }
}

}  // namespace

SizeSweep list_sweep(const std::vector<Problem>& problems, const std::vector<bool>& may_change,
                     std::optional<std::size_t> axis, const std::function<bool(const Problem&)>& is_wanted) {
  SizeSweep rows;
  std::vector<Extents> tuned;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    tuned.push_back(problems[i].extents);
    rows.compared.push_back(
        {.problem = problems[i], .nearest_winner = i, .is_tuned = true, .may_change = may_change[i]});
  }
  for (const ShapeBetween& between : shapes_between(tuned)) {
    SweepRow row{.problem = problems[between.served_by], .nearest_winner = between.served_by};
    row.problem.extents = between.extents;
    if (is_wanted(row.problem)) (axis ? rows.compared : rows.between).push_back(std::move(row));
  }
  if (!axis) return rows;
  std::vector<SweepRow>& sweep = rows.compared;
  std::sort(sweep.begin(), sweep.end(),
            [&](const SweepRow& a, const SweepRow& b) { return a.problem.extents[*axis] < b.problem.extents[*axis]; });
  const auto is_tuned = [](const SweepRow& row) { return row.is_tuned; };
  for (auto row = sweep.begin(); row != sweep.end();) {  // the first and the last one are tuned
    const auto next = std::find_if(row + 1, sweep.end(), is_tuned);
    choose_measured({row + 1, next});
    row = next;
  }
  return rows;
}

std::optional<Problem> largest_corner(const Problem& problem) {
  const bool is_shape = problem.extents[1] != 1 || problem.extents[2] != 1;
  if (!is_shape) return std::nullopt;
  Problem corner = problem;
  const std::array<SizeRange, 3> ranges = size_ranges(problem.extents);
  for (std::size_t axis = 0; axis < ranges.size(); ++axis) {
    const std::int64_t last = ranges[axis].last;
    // A multiple of so many elements is one of so many bytes, whatever the dtype.
    corner.extents[axis] = last - last % std::gcd(problem.extents[axis], std::int64_t{kMaxAlignment});
  }
  const bool is_another = corner.extents != problem.extents && refusal_of(corner).empty();
  return is_another ? std::optional(corner) : std::nullopt;
}

}  // namespace hone::tuner
