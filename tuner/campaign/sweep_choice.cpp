#include "tuner/campaign/sweep_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tuner/text/median.h"
#include "tuner/text/quantities.h"

namespace hone::tuner {
namespace {

/// A winner that is further behind at both tuned sizes beside one between is not the fastest there; and where all
/// others are as fast as the fastest at both, nothing has to be measured between them.
constexpr double kMostBehindBeside = 1.15;
constexpr double kAsFast = 1.002;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The median of what candidates scatter, as a share of their times.
double scatter_of(const Tuning& comparison) {
  std::vector<double> shares;
  for (const Trial& trial : comparison.trials)
    if (trial.verdict == Verdict::ok && trial.samples > 0) shares.push_back(trial.spread_us / trial.median_us);
  return shares.empty() ? 0 : upper_median(shares);
}

}  // namespace

std::optional<std::size_t> only_differing_axis(std::span<const Problem> problems) {
  std::optional<std::size_t> only;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t first = problems.front().extents[axis];
    const bool differs = std::any_of(problems.begin(), problems.end(),
                                     [&](const Problem& problem) { return problem.extents[axis] != first; });
    if (differs && only) return std::nullopt;
    if (differs) only = axis;
  }
  return only;
}

std::array<std::size_t, 2> tuned_beside(std::span<const SweepRow> rows, std::size_t row) {
  std::size_t below = row, above = row;
  for (std::size_t other = row; other-- > 0 && below == row;)
    if (rows[other].is_tuned) below = other;
  for (std::size_t other = row + 1; other < rows.size() && above == row; ++other)
    if (rows[other].is_tuned) above = other;
  return {below, above};
}

SweepComparison::SweepComparison(std::size_t rows, std::vector<Candidate> candidates, std::size_t winners)
    : candidates_(std::move(candidates)),
      winners_(winners),
      ratios_{.shapes = rows, .candidates = candidates_.size(), .us = std::vector<double>(rows * candidates_.size())} {}

std::size_t SweepComparison::index_of(const Candidate& candidate) const {
  return static_cast<std::size_t>(std::find(candidates_.begin(), candidates_.end(), candidate) - candidates_.begin());
}

std::span<double> SweepComparison::ratios_at(std::size_t row) {
  return std::span(ratios_.us).subspan(row * ratios_.candidates, ratios_.candidates);
}

/// At the two tuned rows beside one between, the smaller one first; infinity where the candidate may not serve.
std::array<double, 2> SweepComparison::ratios_beside(std::span<const SweepRow> rows, std::size_t row,
                                                     std::size_t candidate) const {
  std::array<double, 2> ratios{};
  const std::array<std::size_t, 2> beside = tuned_beside(rows, row);
  for (std::size_t i = 0; i < beside.size(); ++i) {
    const double there = ratio(beside[i], candidate);
    ratios[i] = there > 0 ? there : kInfinity;
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

std::vector<Candidate> SweepComparison::list_compared(std::span<const SweepRow> rows, std::size_t row) const {
  std::vector<Candidate> compared;
  bool are_all_alike = !rows[row].is_tuned;
  for (std::size_t winner = 0; winner < winners_; ++winner) {
    if (!rows[row].is_tuned) {
      const auto [less, more] = ratios_beside(rows, row, winner);
      if (less > kMostBehindBeside) continue;
      if (more > kAsFast) are_all_alike = false;
    }
    compared.push_back(candidates_[winner]);
  }
  if (are_all_alike) return {};
  for (const RunnerUp& runner_up : rows[row].runners_up) add_candidate(runner_up.candidate, compared);
  for (const SlowCandidate& slow : rows[row].slow) std::erase(compared, slow.candidate);
  return compared;
}

std::vector<double> SweepComparison::ratios_of(const Tuning& comparison) const {
  std::vector<double> us(candidates_.size());
  double best = kInfinity;
  for (const Trial& trial : comparison.trials) {
    if (trial.verdict != Verdict::ok) continue;
    us[index_of(trial.candidate)] = trial.median_us;
    best = std::min(best, trial.median_us);
  }
  for (double& each : us) each /= best;
  return us;
}

void SweepComparison::record(std::size_t row, const Tuning& here, const Tuning* corner, const Candidate* own) {
  std::vector<double> worst = ratios_of(here);
  if (corner) {
    const std::vector<double> there = ratios_of(*corner);
    const std::size_t spared = own ? index_of(*own) : candidates_.size();
    for (std::size_t i = 0; i < worst.size(); ++i)
      if (there[i] > 0 || i != spared) worst[i] = there[i] > 0 && worst[i] > 0 ? std::max(worst[i], there[i]) : 0;
  }
  std::ranges::copy(worst, ratios_at(row).begin());
}

void SweepComparison::record_only(std::size_t row, const Candidate& candidate) {
  std::ranges::fill(ratios_at(row), 0);
  ratios_at(row)[index_of(candidate)] = 1;
}

void SweepComparison::record_slow(std::span<const SweepRow> rows, std::size_t row) {
  for (const SlowCandidate& slow : rows[row].slow)
    if (const std::size_t index = index_of(slow.candidate); index < candidates_.size())
      ratios_at(row)[index] = slow.ratio;
}

void SweepComparison::fill_unmeasured(std::span<const SweepRow> rows) {
  for (std::size_t row = rows.size(); row-- > 0;)  // the last one is tuned
    if (!rows[row].is_measured) std::ranges::copy(ratios_at(row + 1), ratios_at(row).begin());
}

ShapeTrials SweepComparison::ratios_at_most(std::span<const SweepRow> rows) const {
  ShapeTrials most = ratios_;
  double scatter = 0;
  for (std::size_t row = rows.size(); row-- > 0;) {
    if (rows[row].is_measured) scatter = scatter_of(rows[row].comparison);
    const std::span<double> ratios = std::span(most.us).subspan(row * most.candidates, most.candidates);
    double least = kInfinity;  // not 1 where a corner counts as well
    for (const double ratio : ratios)
      if (ratio > 0) least = std::min(least, ratio);
    for (double& ratio : ratios)
      if (ratio > least) ratio += scatter;
  }
  return most;
}

SweepChoice choose_winners(const SweepComparison& comparison, std::span<const SweepRow> rows,
                           std::optional<std::size_t> axis, double most_regret) {
  SweepChoice choice;
  const ShapeTrials most = comparison.ratios_at_most(rows);
  if (axis) {
    TrialMatrix matrix{.sizes = {}, .candidates = most.candidates, .us = most.us};
    for (const SweepRow& row : rows) matrix.sizes.push_back(row.problem.extents[*axis]);
    choice.candidate_of.assign(rows.size(), Cover::kNone);
    for (const PortfolioPart& part : choose_portfolio(matrix, most_regret).parts)
      for (std::size_t row = part.first; row <= part.last; ++row) choice.candidate_of[row] = part.candidate;
  } else {
    choice.candidate_of = choose_cover(most, most_regret).candidate_of;
  }
  std::vector<std::size_t> used;
  double behind = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t chosen = choice.candidate_of[row];
    if (chosen == Cover::kNone) continue;
    if (std::find(used.begin(), used.end(), chosen) == used.end()) used.push_back(chosen);
    if (!rows[row].is_measured) continue;
    const double regret = std::max(1.0, comparison.ratio(row, chosen)) - 1;  // 0: nothing was measured
    choice.worst_regret = std::max(choice.worst_regret, regret);
    behind += regret;
  }
  choice.winners = used.size();
  const auto measured = std::count_if(rows.begin(), rows.end(), [](const SweepRow& row) { return row.is_measured; });
  choice.mean_regret = behind / static_cast<double>(measured);
  return choice;
}

std::size_t nearest_winner(const SweepRow& row, std::span<const Problem> problems, std::span<const Candidate> winners) {
  for (const RunnerUp& runner_up : row.runners_up)
    if (runner_up.candidate == row.chosen) return runner_up.nearest_winner;
  std::size_t nearest = row.nearest_winner;
  double nearest_octaves = kInfinity;
  for (std::size_t i = 0; i < winners.size(); ++i) {
    const double octaves = shape_distance(row.problem.extents, problems[i].extents);
    if (winners[i] == row.chosen && octaves < nearest_octaves) nearest = i, nearest_octaves = octaves;
  }
  return nearest;
}

std::string served_text(std::span<const SweepRow> rows, std::size_t row, const SweepChoice& choice,
                        std::optional<std::size_t> axis) {
  const std::vector<std::size_t>& chosen = choice.candidate_of;
  if (!axis) {
    const auto count = std::count(chosen.begin(), chosen.end(), chosen[row]);
    return fmt::format("{} of the {} shapes", count, chosen.size());
  }
  std::size_t first = row, last = row;
  while (first > 0 && chosen[first - 1] == chosen[row]) --first;
  while (last + 1 < chosen.size() && chosen[last + 1] == chosen[row]) ++last;
  return fmt::format("n = {}..{}", shape_text(rows[first].problem), shape_text(rows[last].problem));
}

void add_candidate(const Candidate& candidate, std::vector<Candidate>& to) {
  if (std::find(to.begin(), to.end(), candidate) == to.end()) to.push_back(candidate);
}

std::optional<std::size_t> find_trial(const Tuning& tuning, const Candidate& candidate) {
  const auto at = std::find_if(tuning.trials.begin(), tuning.trials.end(),
                               [&](const Trial& trial) { return trial.candidate == candidate; });
  if (at == tuning.trials.end()) return {};
  return static_cast<std::size_t>(at - tuning.trials.begin());
}

void hand_over(Tuning& tuning, const Tuning& comparison, const Candidate& chosen, const Candidate& former,
               const std::string& why) {
  int last = 0;  // what the search has not measured comes after all of it
  for (const Trial& trial : tuning.trials) last = std::max(last, trial.sequence);
  for (const Trial& measured : comparison.trials) {
    if (measured.candidate != chosen && measured.candidate != former) continue;
    const std::optional<std::size_t> known = find_trial(tuning, measured.candidate);
    Trial& trial = known ? tuning.trials[*known] : tuning.trials.emplace_back(measured);
    const bool is_default = trial.is_default;
    const int sequence = trial.sequence;
    trial = measured;
    trial.is_default = is_default;
    trial.sequence = known && sequence > 0 ? sequence : last + 1;
    if (measured.candidate == former) trial.reason = why;
  }
  tuning.winner = find_trial(tuning, chosen);
}

}  // namespace hone::tuner
