#include "tuner/campaign/measure_sweep.h"

#include <hone/error.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

namespace hone::tuner {
namespace {

enum class Round { tuned, centers, rest };

Round round_of(const SweepRow& row) {
  if (row.is_tuned) return Round::tuned;
  return row.is_center ? Round::centers : Round::rest;
}

/// A comparison may take so long when hardly any time is left for it.
constexpr std::chrono::milliseconds kLeastBudget{50};

/// False where the budget of a comparison was spent before the candidate's turn.
bool was_reached(const Tuning& comparison, const Candidate& candidate) {
  const std::optional<std::size_t> trial = find_trial(comparison, candidate);
  return !trial || comparison.trials[*trial].reason.code != ReasonCode::not_measured_budget;
}

}  // namespace

bool SweepMeasurer::measure(std::vector<SweepRow>& rows, const std::vector<Candidate>& winners, double most_ms,
                            SweepComparison& comparison) {
  most_ms_ = most_ms;
  for (const Round round : {Round::tuned, Round::centers, Round::rest}) {
    for (std::size_t index = 0; index < rows.size(); ++index) {
      SweepRow& row = rows[index];
      if (!row.is_measured || round_of(row) != round) continue;
      const bool is_late = spent_ms_ >= most_ms_;
      if (!row.is_tuned && is_late) {
        row.is_measured = false;
        continue;
      }
      const Candidate* own = row.is_tuned ? &winners[row.nearest_winner] : nullptr;
      if (!row.may_change || is_late) {
        comparison.record_only(index, *own);
        continue;
      }
      const std::vector<Candidate> compared = comparison.list_compared(rows, index);
      row.is_measured = !compared.empty();
      if (!row.is_measured) continue;
      if (hooks_.on_progress && compared.size() > 1)
        hooks_.on_progress({.phase = TuningPhase::measuring,
                            .done = static_cast<int>(index),
                            .total = static_cast<int>(rows.size()),
                            .best_us = 0});
      measure(rows, index, compared, own, comparison);
      if (hooks_.stop.stop_requested()) return false;
    }
  }
  comparison.fill_unmeasured(rows);
  return true;
}

void SweepMeasurer::measure(std::vector<SweepRow>& rows, std::size_t index, const std::vector<Candidate>& compared,
                            const Candidate* own, SweepComparison& comparison) {
  if (compared.size() == 1) {
    comparison.record_only(index, compared.front());
    return comparison.record_slow(rows, index);
  }
  SweepRow& row = rows[index];
  try {
    row.comparison = compare_at(row.problem, compared, own);
    comparison.record(index, row.comparison, nullptr, own);
    const std::optional<Problem> corner = largest_corner(row.problem);
    bool is_known = !own || was_reached(row.comparison, *own);
    if (is_known && corner && !hooks_.stop.stop_requested()) {
      const Tuning there = compare_at(*corner, compared, own);
      comparison.record(index, row.comparison, &there, own);
      is_known = !own || was_reached(there, *own);
    }
    if (!is_known) comparison.record_only(index, *own);
    comparison.record_slow(rows, index);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;  // what was tuned did fit
  }
}

Tuning SweepMeasurer::compare_at(const Problem& problem, const std::vector<Candidate>& compared,
                                 const Candidate* first) {
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::milliseconds left(std::llround(std::clamp(most_ms_ - spent_ms_, 0.0, 1e9)));
  TuningOptions options;
  options.budget = std::min(request_.budget, std::max(left, kLeastBudget));
  options.only = compared;
  if (first) options.start_from = {*first};
  options.verify = compared.size() == 1;  // winners were verified when they won
  options.inputs = request_.inputs;
  options.excluded = request_.excluded;
  options.next = request_.next;
  options.stop = hooks_.stop;
  options.on_run = hooks_.on_run;
  Tuning comparison = session_.compare(problem, options);
  spent_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return comparison;
}

}  // namespace hone::tuner
