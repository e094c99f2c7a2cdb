#include "tuner/campaign/tune_problem.h"

#include <fmt/core.h>

#include <hone/error.h>

#include <vector>

#include "tuner/problems/kernel_spec_file.h"
#include "tuner/text/reasons.h"

namespace hone::tuner {
namespace {

/// The most telling reason among the trials of a problem that has no winner: of a wrong result before that of a
/// failure, and only then why most of the others were not measured.
std::string why_nothing_won(const Tuning& tuning) {
  for (const Verdict verdict : {Verdict::wrong, Verdict::failed, Verdict::rejected}) {
    ReasonCounts counts;
    int all = 0;
    for (const Trial& trial : tuning.trials) {
      all += trial.policies;
      if (trial.verdict == verdict) counts.add(name(verdict), trial.reason, trial.policies);
    }
    const std::vector<ReasonCount> reasons = counts.most_frequent_first();
    if (reasons.empty()) continue;
    return fmt::format("{} of {} candidates {}: {}", reasons[0].count, all, name(verdict), reasons[0].reason.text());
  }
  return "it has no candidates on this device";
}

void record(const Tuning& tuning, CampaignItem& item) {
  item.compile_ms = tuning.compile_ms;
  item.measure_ms = tuning.measure_ms;
  item.verify_ms = tuning.verify_ms;
  item.budget_spent = tuning.budget_spent;
  item.search_end = tuning.search_end;
  item.rank_correlation = tuning.rank_correlation;
  item.discarded_samples = tuning.discarded_samples;
  item.roofline_us = tuning.roofline_us;
  ReasonCounts reasons;
  for (const Trial& trial : tuning.trials) {
    (trial.verdict == Verdict::ok ? item.measured : item.rejected) += trial.policies;
    if (trial.verdict != Verdict::ok) reasons.add(name(trial.verdict), trial.reason, trial.policies);
    if (trial.is_default && trial.verdict == Verdict::ok) item.default_us = trial.median_us;
  }
  item.reasons = reasons.most_frequent_first();
  if (tuning.winner) {
    const Trial& winner = tuning.trials[*tuning.winner];
    item.outcome = tuning.has_compared() ? Outcome::tuned : Outcome::untuned;
    item.candidate = winner.candidate;
    item.median_us = winner.median_us;
  } else if (tuning.stopped) {
    item.outcome = Outcome::interrupted;
  } else {
    item.outcome = Outcome::failed;
    item.reason = why_nothing_won(tuning);
  }
}

}  // namespace

CampaignItem look_up(Session& session, const Problem& problem) {
  CampaignItem item{.problem = problem, .measured_problem = problem};
  const std::uint64_t stale_before = session.counters().stale_hits;
  try {
    const Winner& winner = *session.prepare(problem).winner;
    if (!winner.tuned || !winner.shipped.empty() || winner.launch_context != problem.launch_context) return item;
    item.measured_problem.extents = winner.tuned_extents;
    if (size_ranges(winner.tuned_extents) != size_ranges(problem.extents)) return item;
    item.outcome = Outcome::kept;
    item.is_stale = session.counters().stale_hits > stale_before;
    item.candidate = winner.candidate;
    item.median_us = winner.median_us;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_tuned) throw;
  }
  return item;
}

CampaignItem tune_problem(Session& session, const TuneRequest& request, const WorkHooks& hooks) {
  CampaignItem item{.problem = request.problem, .weight = request.weight, .measured_problem = request.problem};
  TuningOptions options;
  options.budget = request.budget;
  options.exhaustive = request.exhaustive;
  options.inputs = request.inputs;
  options.excluded = request.excluded;
  options.next = request.next;
  options.stop = hooks.stop;
  options.on_progress = hooks.on_progress;
  options.on_run = hooks.on_run;
  const std::uint64_t not_stored_before = session.counters().not_stored;
  try {
    record(session.tune(item.problem, options), item);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost || error.code() == ErrorCode::io_failed) throw;
    // A problem too large for the device, or one that its compiler chokes on, must not cost the others their turn.
    item.outcome = Outcome::failed;
    item.reason = message_for(*item.problem.family, error);
  }
  require_stored(session, not_stored_before);
  return item;
}

void require_stored(const Session& session, std::uint64_t not_stored_before) {
  const SessionCounters counters = session.counters();
  if (counters.not_stored > not_stored_before) throw Error(ErrorCode::cache_failed, counters.last_cache_failure);
}

}  // namespace hone::tuner
