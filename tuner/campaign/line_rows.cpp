#include "tuner/campaign/line_rows.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace hone::tuner {
namespace {

/// Of the rows between two tuned ones that are so far apart.
void choose_measured(std::span<Row> gap, double octaves) {
  for (Row& row : gap) row.is_measured = false;
  const auto fit = static_cast<std::size_t>(std::max(0L, std::lround(octaves / kLeastApart) - 1));
  const std::size_t count = std::min({kMostBetween, gap.size(), fit});
  for (std::size_t i = 1; i <= count; ++i) gap[i * (gap.size() + 1) / (count + 1) - 1].is_measured = true;
}

}  // namespace

LineRows list_rows(const std::vector<Problem>& problems, const std::vector<bool>& may_change,
                   std::optional<std::size_t> axis, const std::function<bool(const Problem&)>& is_wanted) {
  LineRows rows;
  std::vector<Extents> tuned;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    tuned.push_back(problems[i].extents);
    rows.chosen_for.push_back({.problem = problems[i], .server = i, .is_tuned = true, .may_change = may_change[i]});
  }
  for (const ShapeBetween& between : shapes_between(tuned)) {
    Row row{.problem = problems[between.served_by], .server = between.served_by};
    row.problem.extents = between.extents;
    if (is_wanted(row.problem)) (axis ? rows.chosen_for : rows.between).push_back(std::move(row));
  }
  if (!axis) return rows;
  std::vector<Row>& line = rows.chosen_for;
  std::sort(line.begin(), line.end(),
            [&](const Row& a, const Row& b) { return a.problem.extents[*axis] < b.problem.extents[*axis]; });
  const auto is_tuned = [](const Row& row) { return row.is_tuned; };
  for (auto row = line.begin(); row != line.end();) {  // the first and the last one are tuned
    const auto next = std::find_if(row + 1, line.end(), is_tuned);
    if (next != line.end())
      choose_measured({row + 1, next}, shape_distance(row->problem.extents, next->problem.extents));
    row = next;
  }
  return rows;
}

void interpolate(const std::vector<Row>& rows, ShapeTrials& times) {
  const auto times_at = [&](std::size_t row) {
    return std::span(times.us).subspan(row * times.candidates, times.candidates);
  };
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].is_measured) continue;
    std::size_t below = row, above = row;
    while (!rows[below].is_measured) --below;
    while (!rows[above].is_measured) ++above;
    const auto octaves_to = [&](std::size_t other) {
      return shape_distance(rows[row].problem.extents, rows[other].problem.extents);
    };
    const double way = octaves_to(below) / (octaves_to(below) + octaves_to(above));
    const std::span<double> here = times_at(row), from = times_at(below), to = times_at(above);
    for (std::size_t i = 0; i < here.size(); ++i)
      here[i] = from[i] > 0 && to[i] > 0 ? from[i] + way * (to[i] - from[i]) : 0;
    if (*std::max_element(here.begin(), here.end()) == 0) std::copy(to.begin(), to.end(), here.begin());
  }
}

}  // namespace hone::tuner
