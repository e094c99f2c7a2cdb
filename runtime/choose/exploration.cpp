#include "runtime/choose/exploration.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/choose/waves.h"
#include "runtime/search/model.h"

namespace hone {

Exploration::Exploration(Device& device, const Problem& problem, const TuningOptions& options, BinaryMemo& memo,
                         Race& race, Clock::time_point compile_deadline, Clock::time_point deadline)
    : device_(device),
      problem_(problem),
      options_(options),
      compile_deadline_(compile_deadline),
      deadline_(deadline),
      rule_(roofline_us(device.facts(), device.limits(), problem, options.inputs),
            options.measure_all || options.exhaustive || !options.only.empty()),
      order_(device.facts(), problem, options, device.limits()),
      loader_(device, problem, order_.ranking(), memo, options.stop),
      queue_(device.facts(), problem, options, order_),
      measurer_(race) {}

void Exploration::run() {
  rejected_ = std::move(order_.rejected());

  Clock::time_point deadline = deadline_;
  Wave wave = order_.next(first_wave_size(device_, problem_, options_, order_), measurer_.leader_us());
  while (!wave.empty()) {
    const auto now = Clock::now();
    const std::size_t late =
        add(wave, compile(wave, queue_.has_had_any() ? now + (deadline_ - now) / 2 : compile_deadline_));
    const bool has_measured = measurer_.measured_count() > 0;
    BinaryMemo::Ahead ahead;
    wave.clear();
    if ((has_measured || late > 0) && may_compile_meanwhile(device_.facts())) {
      wave = order_.next(has_measured ? wave_size(device_) : late, measurer_.leader_us());
      if (!wave.empty()) ahead = loader_.compile_ahead(wave, deadline_);
    }
    // However long the first wave took to compile, it is measured: a choice among few is better than none.
    if (!has_measured) deadline = std::max(deadline_, Clock::now() + time_for_first_wave(options_.budget, compile_ms()));
    measure(deadline);
    if (is_done(wave)) {
      order_.give_back(wave);
      break;
    }
    deadline = deadline_;
    if (wave.empty()) wave = order_.next(wave_size(device_), measurer_.leader_us());
  }
  if (!rule_.measures_all()) refine(deadline);
  reject_rest();
}

std::vector<CompileOutcome> Exploration::compile(const Wave& wave, Clock::time_point deadline) {
  return loader_.compile(wave, deadline, [&](int done, int total) { report(TuningPhase::compiling, done, total); });
}

/// Policies that were not begun in time are given back, to come with a later wave, if there is something to measure
/// meanwhile. Returns how many.
std::size_t Exploration::add(const Wave& wave, const std::vector<CompileOutcome>& outcomes) {
  Wave late;
  for (std::size_t i = 0; i < wave.size(); ++i) {
    if (outcomes[i].started())
      add(wave[i], outcomes[i]);
    else
      late.push_back(wave[i]);
  }
  if (queue_.has_had_any() && Clock::now() < deadline_ && !options_.stop.stop_requested()) {
    order_.give_back(late);
    return late.size();
  }
  for (const std::size_t place : late) add(place, CompileOutcome{});
  return 0;
}

void Exploration::add(std::size_t place, CompileOutcome outcome) {
  const bool is_stopped = options_.stop.stop_requested();
  // However small the budget is, something is measured.
  if (!outcome.started() && !queue_.has_had_any() && !is_stopped) outcome = loader_.compile(place);
  Reason why;
  if (const CompiledCode* const code = loader_.load(place, outcome, why)) {
    std::vector<Trial> left_out = queue_.add(place, code->compiled);
    std::move(left_out.begin(), left_out.end(), std::back_inserter(rejected_));
    return;
  }
  const RankedPolicy& ranked = order_.ranking()[place];
  Trial trial{.candidate = {ranked.policy, {}}, .predicted_us = ranked.prediction.us()};
  if (outcome.started()) {
    trial.verdict = Verdict::failed;
    trial.reason = std::move(why);
  } else {
    trial.reason = why_not_compiled(is_stopped ? SearchEnd::stopped : SearchEnd::budget_spent, measurer_.leader_us());
    budget_spent_ = budget_spent_ || !is_stopped;
  }
  rejected_.push_back(std::move(trial));
}

void Exploration::measure(Clock::time_point deadline) {
  listed_ += static_cast<int>(queue_.sort());
  while (true) {
    const bool has_expectations = !rule_.measures_all() && measurer_.measured_count() > 0;
    std::vector<QueuedCandidate> group =
        queue_.next_group(has_expectations ? measurer_.leader_us() : std::numeric_limits<double>::infinity());
    if (group.empty()) return;
    measure_group(std::move(group), deadline);
  }
}

void Exploration::measure_group(std::vector<QueuedCandidate> group, Clock::time_point deadline) {
  std::vector<QueuedCandidate> worthwhile;
  std::vector<std::shared_ptr<const Module>> modules;
  SearchState now = state();
  for (QueuedCandidate& candidate : group) {
    const Expectation expected{.us = order_.surrogate().expected_us(candidate.point), .gain = candidate.gain};
    candidate.trial.reason = rule_.why_not(now, candidate.must_be_measured, expected);
    if (candidate.trial.reason.empty()) {
      if (now.measured > 0) ++now.measured;  // of nothing, nothing is expected
      modules.push_back(loader_.code_of(candidate.trial.candidate).module);
      worthwhile.push_back(std::move(candidate));
    } else {
      candidate.trial.verdict = Verdict::rejected;
      queue_.pass_over(std::move(candidate));
      ++done_;
    }
  }
  const int done_before = done_;
  const auto on_measured = [&](int done) {
    done_ = done_before + done;
    report(TuningPhase::measuring, done_, listed_);
  };
  for (const MeasuredPoint& each :
       measurer_.measure(std::move(worthwhile), modules, {.deadline = deadline, .stop = options_.stop}, on_measured))
    if (!rule_.measures_all()) order_.surrogate().observe(each.point, each.median_us);
}

/// Where the budget ended the search, and the first wave has time until `deadline` nevertheless, nothing more is
/// compiled: most relatives are other grids of what is.
void Exploration::refine(Clock::time_point deadline) {
  if (end_ == SearchEnd::near_roofline || end_ == SearchEnd::stopped) return;
  const bool may_compile = end_ != SearchEnd::budget_spent;
  std::vector<Candidate> looked_around;
  while (true) {
    const SearchState now = state();
    if (now.measured == 0 || rule_.is_at_roofline(now.leader_us) || now.is_stopped || Clock::now() >= deadline) return;
    bool has_any = false;
    for (const Candidate& leader : leaders_of(measurer_.measured(), problem_.family->space())) {
      if (std::find(looked_around.begin(), looked_around.end(), leader) != looked_around.end()) continue;
      looked_around.push_back(leader);
      has_any = (may_compile ? require_relatives(leader) : queue_.require_relatives(leader, now.leader_us)) || has_any;
    }
    measure(deadline);
    if (!has_any) return;
  }
}

/// Compiles the near relatives of a leader that are not yet, and has the best of each measured; false: there is none.
bool Exploration::require_relatives(const Candidate& leader) {
  const Wave wave = order_.take_relatives(leader.policy, measurer_.leader_us());
  std::vector<CompileOutcome> outcomes = compile(wave, deadline_);
  for (std::size_t i = 0; i < wave.size(); ++i) add(wave[i], std::move(outcomes[i]));
  return queue_.require_relatives(leader, measurer_.leader_us());
}

/// `next`: the wave that is being compiled.
bool Exploration::is_done(const Wave& next) {
  const std::optional<SearchEnd> end = rule_.end(state(), [&]() -> std::optional<double> {
    Wave rest = order_.left();
    rest.insert(rest.end(), next.begin(), next.end());
    return rest.empty() ? std::nullopt : std::optional(order_.best_gain(rest, measurer_.leader_us()));
  });
  if (end) end_ = *end;
  budget_spent_ = budget_spent_ || end == SearchEnd::budget_spent;
  return end.has_value();
}

void Exploration::reject_rest() {
  std::vector<Trial> passed_over = queue_.take_passed_over();
  std::move(passed_over.begin(), passed_over.end(), std::back_inserter(rejected_));
  if (budget_spent_ && end_ != SearchEnd::stopped) end_ = SearchEnd::budget_spent;
  for (const std::size_t place : order_.left()) {
    const RankedPolicy& ranked = order_.ranking()[place];
    rejected_.push_back({.candidate = {ranked.policy, {}},
                         .predicted_us = ranked.prediction.us(),
                         .reason = why_not_compiled(end_, measurer_.leader_us())});
  }
}

SearchState Exploration::state() const {
  return {.measured = measurer_.measured_count(),
          .policies = order_.ranking().size(),
          .candidates = queue_.expected_count(order_.valid_policies()),
          .model_error = order_.surrogate().error(),
          .leader_us = measurer_.leader_us(),
          .has_candidates = queue_.has_had_any(),
          .others_wait = !options_.next.empty(),
          .is_stopped = options_.stop.stop_requested(),
          .is_late = Clock::now() >= deadline_};
}

void Exploration::report(TuningPhase phase, int done, int total) const {
  if (!options_.on_progress) return;
  const double best_us = std::isfinite(measurer_.leader_us()) ? measurer_.leader_us() : 0;
  options_.on_progress({.phase = phase, .done = done, .total = total, .best_us = best_us});
}

}  // namespace hone
