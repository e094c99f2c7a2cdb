#include "tuner/campaign/line_rows.h"

#include <algorithm>
#include <utility>

#include <hone/portfolio.h>

namespace hone::tuner {
namespace {

/// Moves all but kMostBetween of the rows between two tuned ones to the unmeasured.
void thin_out(LineRows& rows) {
  std::vector<Row> kept, gap;
  for (Row& row : rows.measured) {
    if (!row.is_tuned) {
      gap.push_back(std::move(row));
      continue;
    }
    const std::size_t most = std::min(kMostBetween, gap.size());
    for (std::size_t i = 0; i < gap.size(); ++i) {
      const bool is_measured = (i + 1) * most / gap.size() > i * most / gap.size();
      (is_measured ? kept : rows.unmeasured).push_back(std::move(gap[i]));
    }
    gap.clear();
    kept.push_back(std::move(row));
  }
  rows.measured = std::move(kept);
}

}  // namespace

LineRows list_rows(const std::vector<Problem>& problems, const std::vector<bool>& may_change,
                   std::optional<std::size_t> axis, const std::function<bool(const Problem&)>& is_wanted) {
  LineRows rows;
  std::vector<Extents> tuned;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    tuned.push_back(problems[i].extents);
    rows.measured.push_back({.problem = problems[i], .server = i, .is_tuned = true, .may_change = may_change[i]});
  }
  for (const ShapeBetween& between : shapes_between(tuned)) {
    Row row{.problem = problems[between.served_by], .server = between.served_by};
    row.problem.extents = between.extents;
    if (is_wanted(row.problem)) (axis ? rows.measured : rows.unmeasured).push_back(std::move(row));
  }
  if (!axis) return rows;
  std::sort(rows.measured.begin(), rows.measured.end(),
            [&](const Row& a, const Row& b) { return a.problem.extents[*axis] < b.problem.extents[*axis]; });
  thin_out(rows);
  return rows;
}

}  // namespace hone::tuner
