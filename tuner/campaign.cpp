#include "tuner/campaign.h"

#include <fmt/core.h>

#include <hone/error.h>

#include <algorithm>
#include <map>

namespace hone::tuner {
namespace {

using std::chrono::milliseconds;

/// Records a tuned winner that the session can already dispatch to.
bool look_up(Session& session, CampaignItem& item) {
  try {
    const Choice choice = session.prepare(item.problem);
    if (!choice.winner->tuned) return false;
    item.outcome = Outcome::kept;
    item.candidate = choice.winner->candidate;
    item.median_us = choice.winner->median_us;
    item.measured_problem.extents = choice.winner->tuned_extents;
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_tuned) return false;
    throw;
  }
}

/// The most telling reason among the trials of a problem that has no winner: of a wrong result before that of a
/// failure, and only then why most of the others were not measured.
std::string why_nothing_won(const Tuning& tuning) {
  for (const Verdict verdict : {Verdict::wrong, Verdict::failed, Verdict::rejected}) {
    std::map<std::string, int> counts;
    for (const Trial& trial : tuning.trials) {
      if (trial.verdict == verdict) ++counts[trial.reason];
    }
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == counts.end()) continue;
    return fmt::format("{} of {} candidates {}: {}", most->second, tuning.trials.size(), name(verdict), most->first);
  }
  return "it has no candidates on this device";
}

void record(const Tuning& tuning, CampaignItem& item) {
  item.compile_ms = tuning.compile_ms;
  item.measure_ms = tuning.measure_ms;
  item.budget_spent = tuning.budget_spent;
  item.search_end = tuning.search_end;
  item.rank_correlation = tuning.rank_correlation;
  item.discarded_samples = tuning.discarded_samples;
  for (const Trial& trial : tuning.trials) {
    (trial.verdict == Verdict::ok ? item.measured : item.rejected) += 1;
    if (trial.is_default && trial.verdict == Verdict::ok) item.default_us = trial.median_us;
  }
  if (tuning.winner) {
    const Trial& winner = tuning.trials[*tuning.winner];
    item.outcome = Outcome::tuned;
    item.candidate = winner.candidate;
    item.median_us = winner.median_us;
  } else if (tuning.stopped) {
    item.outcome = Outcome::interrupted;
  } else {
    item.outcome = Outcome::failed;
    item.reason = why_nothing_won(tuning);
  }
}

void tune_item(Session& session, const CampaignOptions& options, milliseconds budget, CampaignObserver& observer,
               CampaignItem& item, std::string& device_failure) {
  TuningOptions tuning_options;
  tuning_options.budget = budget;
  tuning_options.exhaustive = options.exhaustive;
  tuning_options.inputs = options.inputs;
  tuning_options.stop = options.stop;
  tuning_options.on_progress = [&](const TuningProgress& progress) { observer.progressed(progress); };
  try {
    record(session.tune(item.problem, tuning_options), item);
  } catch (const Error& error) {
    // A problem too large for the device, or one that its compiler chokes on, must not cost the others their turn.
    item.outcome = Outcome::failed;
    item.reason = error.what();
    if (error.code() == ErrorCode::device_failed) device_failure = error.what();
  }
}

}  // namespace

std::vector<Problem> one_per_size_class(std::span<const Problem> problems) {
  const auto same_class = [](const Problem& a, const Problem& b) {
    return a.family == b.family && a.operation == b.operation && a.dtype == b.dtype && a.alignment == b.alignment &&
           a.launch_context == b.launch_context && size_class(a.extents[0]) == size_class(b.extents[0]);
  };
  std::vector<Problem> kept;
  for (const Problem& problem : problems) {
    const bool seen =
        std::any_of(kept.begin(), kept.end(), [&](const Problem& earlier) { return same_class(earlier, problem); });
    if (!seen) kept.push_back(problem);
  }
  return kept;
}

CampaignResult run_campaign(Session& session, std::span<const Problem> problems, const CampaignOptions& options,
                            CampaignObserver& observer) {
  const auto start = options.now();
  CampaignResult result;
  std::size_t kept = 0;
  for (const Problem& problem : problems) {
    CampaignItem& item = result.items.emplace_back();
    item.problem = item.measured_problem = problem;
    if (!options.again && look_up(session, item)) ++kept;
  }
  observer.planned(problems.size() - kept, kept);

  for (CampaignItem& item : result.items) {
    if (item.outcome == Outcome::kept) {
      observer.finished(item);
      continue;
    }
    milliseconds budget = options.budget;
    if (options.total_budget) {
      const auto left = *options.total_budget - std::chrono::duration_cast<milliseconds>(options.now() - start);
      result.out_of_budget = left <= milliseconds::zero();
      budget = std::min(budget, left);
    }
    result.interrupted = options.stop.stop_requested();
    if (result.interrupted || result.out_of_budget) break;

    observer.started(item.problem);
    const std::uint64_t failures_before = session.counters().cache_failures;
    tune_item(session, options, budget, observer, item, result.device_failure);
    observer.finished(item);
    const SessionCounters counters = session.counters();
    if (counters.cache_failures > failures_before) {
      result.cache_failure = counters.last_cache_failure;
    }
    if (!result.cache_failure.empty() || !result.device_failure.empty()) break;
  }
  result.interrupted = options.stop.stop_requested() &&
                       std::any_of(result.items.begin(), result.items.end(), [](const CampaignItem& item) {
                         return item.outcome == Outcome::interrupted || item.outcome == Outcome::not_reached;
                       });
  return result;
}

}  // namespace hone::tuner
