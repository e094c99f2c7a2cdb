#include "tuner/campaign/measure_sweep.h"

#include <hone/error.h>

#include <optional>

namespace hone::tuner {
namespace {

enum class Round { tuned, centers, rest };

Round round_of(const SweepRow& row) {
  if (row.is_tuned) return Round::tuned;
  return row.is_center ? Round::centers : Round::rest;
}

}  // namespace

bool SweepMeasurer::measure(std::vector<SweepRow>& rows, const std::vector<Candidate>& winners, double most_between_ms,
                            SweepComparison& comparison) {
  double tuned_rows_ms = 0;
  for (const Round round : {Round::tuned, Round::centers, Round::rest}) {
    if (round == Round::centers) tuned_rows_ms = spent_ms_;
    for (std::size_t index = 0; index < rows.size(); ++index) {
      SweepRow& row = rows[index];
      if (!row.is_measured || round_of(row) != round) continue;
      if (!row.is_tuned && spent_ms_ - tuned_rows_ms >= most_between_ms) {
        row.is_measured = false;
        continue;
      }
      const Candidate* own = row.is_tuned ? &winners[row.nearest_winner] : nullptr;
      if (!row.may_change) {
        comparison.record_only(index, *own);
        continue;
      }
      const std::vector<Candidate> compared = comparison.list_compared(rows, index);
      row.is_measured = !compared.empty();
      if (!row.is_measured) continue;
      if (hooks_.on_progress)
        hooks_.on_progress({.phase = TuningPhase::measuring,
                            .done = static_cast<int>(index),
                            .total = static_cast<int>(rows.size()),
                            .best_us = 0});
      measure(row, compared, own, index, comparison);
      if (hooks_.stop.stop_requested()) return false;
    }
  }
  comparison.fill_unmeasured(rows);
  return true;
}

void SweepMeasurer::measure(SweepRow& row, const std::vector<Candidate>& compared, const Candidate* own,
                            std::size_t index, SweepComparison& comparison) {
  if (compared.size() == 1) return comparison.record_only(index, compared.front());
  try {
    row.comparison = compare_at(row.problem, compared);
    comparison.record(index, row.comparison, nullptr, own);
    const std::optional<Problem> corner = largest_corner(row.problem);
    if (!corner || hooks_.stop.stop_requested()) return;
    const Tuning there = compare_at(*corner, compared);
    comparison.record(index, row.comparison, &there, own);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;  // what was tuned did fit
  }
}

Tuning SweepMeasurer::compare_at(const Problem& problem, const std::vector<Candidate>& compared) {
  TuningOptions options;
  options.budget = request_.budget;
  options.only = compared;
  options.verify = compared.size() == 1;  // winners were verified when they won
  options.inputs = request_.inputs;
  options.excluded = request_.excluded;
  options.next = request_.next;
  options.stop = hooks_.stop;
  options.on_run = hooks_.on_run;
  Tuning comparison = session_.compare(problem, options);
  spent_ms_ += comparison.compile_ms + comparison.measure_ms;
  return comparison;
}

}  // namespace hone::tuner
