#include "tuner/inspect/winner_rows.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using Ranges = std::array<cache::RangeRecord, 3>;

auto problem_key(const cache::KeyRecord& key) {
  const cache::ProblemRecord& problem = key.problem;
  return std::tie(key.device.kind, key.device.name, key.device.architecture, key.device.identity,
                  key.toolchain.compiler, key.toolchain.driver, key.toolchain.family_digest, problem.family,
                  problem.operation, problem.dtype, problem.numerics, problem.launch_context, problem.alignment,
                  problem.objective);
}

/// The other extents, then those of `axis`: rows that may be joined along it come to stand side by side.
auto size_key(const Ranges& sizes, std::size_t axis) {
  const cache::RangeRecord& a = sizes[axis == 0 ? 1 : 0];
  const cache::RangeRecord& b = sizes[axis == 2 ? 1 : 2];
  return std::tie(a.first, a.last, b.first, b.last, sizes[axis].first, sizes[axis].last);
}

void sort_along(std::vector<WinnerRow>& rows, std::size_t axis) {
  std::stable_sort(rows.begin(), rows.end(), [axis](const WinnerRow& a, const WinnerRow& b) {
    const auto key_a = problem_key(a.shown.key), key_b = problem_key(b.shown.key);
    return key_a != key_b ? key_a < key_b : size_key(a.sizes, axis) < size_key(b.sizes, axis);
  });
}

bool may_join(const WinnerRow& a, const WinnerRow& b, std::size_t axis) {
  const cache::WinnerRecord& one = a.shown.winner;
  const cache::WinnerRecord& other = b.shown.winner;
  if (problem_key(a.shown.key) != problem_key(b.shown.key) || one.candidate != other.candidate) return false;
  if (one.tuned != other.tuned || (!one.tuned && how_text(a.shown) != how_text(b.shown))) return false;
  if (one.lender != other.lender) return false;
  if (how_text(a.shown) == "nearest" && one.tuned_extents != other.tuned_extents) return false;
  for (std::size_t i = 0; i < a.sizes.size(); ++i)
    if (i != axis && a.sizes[i] != b.sizes[i]) return false;
  return a.sizes[axis].last + 1 == b.sizes[axis].first;
}

/// `b` follows `a` along `axis`.
void join(WinnerRow& a, const WinnerRow& b, std::size_t axis) {
  a.sizes[axis].last = b.sizes[axis].last;
  a.classes += b.classes;
  a.measured += b.measured;
  if (is_measured(b.shown) || !is_measured(a.shown)) a.shown = b.shown;
}

}  // namespace

std::string WinnerRow::how() const {
  const bool are_some_lent = measured > 0 && measured < classes;
  return are_some_lent ? "tuned, lent" : std::string(how_text(shown));
}

std::vector<WinnerRow> join_classes(const std::vector<cache::StoredWinner>& winners) {
  std::vector<WinnerRow> rows;
  for (const cache::StoredWinner& stored : winners)
    rows.push_back({.shown = stored, .sizes = stored.key.problem.sizes, .measured = is_measured(stored) ? 1 : 0});
  for (std::size_t axis = 3; axis-- > 0;) {
    sort_along(rows, axis);
    std::vector<WinnerRow> joined;
    for (WinnerRow& row : rows) {
      if (!joined.empty() && may_join(joined.back(), row, axis))
        join(joined.back(), row, axis);
      else
        joined.push_back(std::move(row));
    }
    rows = std::move(joined);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const WinnerRow& a, const WinnerRow& b) {
    const auto key_of = [](const WinnerRow& row) {
      return std::tie(row.sizes[0].first, row.sizes[1].first, row.sizes[2].first);
    };
    const auto key_a = problem_key(a.shown.key), key_b = problem_key(b.shown.key);
    return key_a != key_b ? key_a < key_b : key_of(a) < key_of(b);
  });
  return rows;
}

}  // namespace hone::tuner
