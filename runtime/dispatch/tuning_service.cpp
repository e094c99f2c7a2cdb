#include "runtime/dispatch/tuning_service.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/family_table.h>
#include <hone/sdk/portfolio.h>

#include "runtime/choose/choice_check.h"
#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/choose/policy_loader.h"
#include "runtime/choose/waves.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/dispatch/work_claim.h"

namespace hone {
namespace {

using std::chrono::milliseconds;

/// How long to wait for another process to tune a problem, in budgets: most end within one.
constexpr int kBudgetsToWait = 2;

/// One part in so many of the time that a tuning took is for checking its winner where it is adopted.
constexpr int kCheckingPart = 4;

/// How long to wait for other writers with a claim: dozens of processes may start at once.
constexpr milliseconds kClaimPatience(5000);

/// How long to wait for another process's choice without measuring: for the compiler, on a busy machine.
constexpr milliseconds kChoicePatience(10000);

/// Candidates of a tuning from which the next one learns: an exhaustive one has hundreds.
constexpr std::size_t kMostRemembered = 128;

/// Why a tuning has no winner.
std::string first_failure(const Tuning& tuning) {
  const auto failed = std::find_if(tuning.trials.begin(), tuning.trials.end(), [](const Trial& trial) {
    return trial.verdict == Verdict::wrong || trial.verdict == Verdict::failed;
  });
  if (failed != tuning.trials.end()) return failed->reason.text();
  return tuning.trials.empty() ? "the family's space is empty" : tuning.trials.front().reason.text();
}

}  // namespace

std::optional<Resolved> TuningService::tune_miss(const Problem& problem, bool has_misfit) {
  const bool is_served = plans_.find(problem) != nullptr;
  const auto end = Clock::now() + (is_served ? milliseconds::zero() : kBudgetsToWait * core_.options().tune_budget);
  for (bool even_if_served = has_misfit, has_waited = false;;) {
    // Reading first: dozens of processes that all write keep each other out.
    if (core_.cache().is_claimed(Work::tuning, problem)) {
      if (!std::exchange(has_waited, true)) core_.count(&SessionCounters::waits);
      if (!wait_for_owner(core_.cache(), Work::tuning, problem, end)) return std::nullopt;
      const CachedPlan cached = lookup_.find(problem, false);
      if (const Resolved found = lookup_.settled(problem, cached); found.plan) return found;
      even_if_served = cached.is_misfit;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    const auto patience = std::clamp(left, milliseconds::zero(), kClaimPatience);
    const auto state = core_.cache().claim(Work::tuning, problem, even_if_served, patience);
    if (state == cache::ClaimState::locked) return std::nullopt;
    if (!state || state == cache::ClaimState::taken) {
      const LoadedPlan* const plan = tune_claimed(problem, state.has_value());
      return Resolved{plan, plan && plan->winner.tuned ? ChoiceSource::tuned : ChoiceSource::heuristic};
    }
    if (state == cache::ClaimState::served) {
      const CachedPlan cached = lookup_.find(problem, false);
      if (const Resolved found = lookup_.settled(problem, cached); found.plan) return found;
      even_if_served = cached.is_misfit || cached.untuned;
      if (!even_if_served && Clock::now() >= end) return std::nullopt;  // the file is locked again
    }
  }
}

/// Families that are built in are verified by Hone's own tests, and nothing can be verified during capture.
ChoiceCheck TuningService::check_of(const Problem& problem, bool capturing) {
  if (capturing || is_built_in(*problem.family)) return {};
  return [&](const ModelChoice& made) {
    try {
      return fault_of_choice(core_.device(), problem, made.trial.candidate, made.module, core_.memo());
    } catch (const NotResident& refused) {
      core_.note_refused_grid(problem, made.trial.candidate.policy, refused.what());
      throw;
    }
  };
}

/// Where all policies of a family wait for their blocks, there may be room for one by now.
ModelChoice TuningService::first_choice(const Problem& problem, bool capturing) {
  const auto choose = [&](Cooperation cooperation) {
    return choose_by_model(*core_.device(), problem, kWorkspaceBytes, core_.memo(), check_of(problem, capturing),
                           cooperation);
  };
  if (core_.cooperation() == Cooperation::allowed) return choose(Cooperation::allowed);
  try {
    return choose(Cooperation::refused);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::compile_failed) throw;
  }
  return choose(Cooperation::allowed);
}

const LoadedPlan& TuningService::choose_heuristic(const Problem& problem, bool capturing) {
  const ModelChoice choice = first_choice(problem, capturing);
  const Winner winner = make_winner(problem, choice.trial, false);
  const LoadedPlan& plan = plans_.install(problem, winner, choice.module, capturing);
  // Other processes may have room for a grid that was refused here.
  if (core_.cooperation() == Cooperation::allowed) core_.cache().publish(problem, winner, *choice.binary, nullptr);
  core_.cache().note_miss(problem, winner.sizes, false);
  core_.count(&SessionCounters::heuristics);
  return plan;
}

Resolved TuningService::choose_resident(const Problem& problem, bool capturing) {
  if (const LoadedPlan* const plan = next_measured(problem, capturing)) return {plan, ChoiceSource::cache};
  const ModelChoice choice = choose_by_model(*core_.device(), problem, kWorkspaceBytes, core_.memo(),
                                             check_of(problem, capturing), Cooperation::refused);
  return {&plans_.replace_refused(problem, make_winner(problem, choice.trial, false), choice.module),
          ChoiceSource::heuristic};
}

/// The best candidate of the stored tuning that is right and whose blocks do not wait for each other; nullptr: none is
/// known. Its trial is best first.
const LoadedPlan* TuningService::next_measured(const Problem& problem, bool capturing) {
  const std::optional<Tuning> stored = core_.cache().find_tuning(problem);
  if (!stored) return nullptr;
  const ChoiceCheck check = check_of(problem, capturing);
  for (const Trial& trial : stored->trials) {
    const Policy& policy = trial.candidate.policy;
    if (trial.verdict != Verdict::ok || trial.samples == 0 || core_.is_refused(problem, policy) ||
        !may_launch(core_.facts(), problem, trial.candidate))
      continue;
    try {
      const CompiledCode code = load(problem, trial.candidate, problem.family->space().to_string(policy));
      if (check && !check({.trial = trial, .binary = code.binary, .module = code.module}).empty()) continue;
      Winner winner = make_winner(problem, trial, true);
      winner.resources = code.compiled.resources;
      winner.resident_blocks = code.compiled.resident_blocks;
      winner.tuned_extents = stored->problem.extents;
      return &plans_.replace_refused(problem, winner, code.module);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) throw;
      return nullptr;  // it does not compile or load here; what the model chooses may, or says why not
    }
  }
  return nullptr;
}

Resolved TuningService::choose_heuristic_once(const Problem& problem) {
  const auto end = Clock::now() + kChoicePatience;
  std::optional<WorkClaim> claim;
  while (!claim) {
    if (core_.cache().is_claimed(Work::choice, problem)) {
      const bool is_done = wait_for_owner(core_.cache(), Work::choice, problem, end);
      const CachedPlan cached = lookup_.find(problem, false);
      if (cached.plan) return {cached.plan, cached.source};
      if (cached.untuned)
        if (const LoadedPlan* const plan = lookup_.load(problem, *cached.untuned, false))
          return {plan, ChoiceSource::cache};
      if (!is_done) break;
    }
    const auto state = core_.cache().claim(Work::choice, problem, true, kClaimPatience);
    if (state == cache::ClaimState::taken)
      claim.emplace(core_.cache(), Work::choice, problem);
    else if (state != cache::ClaimState::held)
      break;
  }
  return {&choose_heuristic(problem, false), ChoiceSource::heuristic};
}

/// Once in a session. What a busy machine measured is too long, so an explicit tuning measures again, and the least of
/// all measurements counts; a miss takes what is stored.
void TuningService::settle_limits(Limits wanted) {
  if (std::exchange(has_limits_, true)) return;
  const std::optional<DeviceLimits> stored = core_.cache().find_limits();
  if (stored && wanted == Limits::stored) return core_.device()->set_limits(*stored);
  const DeviceLimits measured = core_.device()->limits();
  if (measured != DeviceLimits{}) core_.device()->set_limits(core_.cache().publish(measured));
}

/// nullptr when there is too little memory to measure in.
const LoadedPlan* TuningService::tune_claimed(const Problem& problem, bool is_claimed) {
  settle_limits(Limits::stored);
  TuningOptions options{.budget = core_.options().tune_budget,
                        .workspace_bytes = kWorkspaceBytes,
                        .objective = core_.options().objective,
                        .start_from = nearest_.starts_for(problem),
                        .nearby = nearby(problem)};
  std::optional<WorkClaim> claim;
  if (is_claimed) claim.emplace(core_.cache(), Work::tuning, problem);
  options.on_progress = [&](const TuningProgress&) {
    if (claim) claim->renew_if_due();
  };
  try {
    const Tuning tuning = measure(problem, options);
    remember(tuning);
    if (!tuning.winner)
      throw Error(tuning.has_compiled ? ErrorCode::device_failed : ErrorCode::compile_failed,
                  fmt::format("no candidate for {} {} {}: {}", to_string(problem),
                              tuning.has_compiled ? "works on" : "compiles for", core_.device()->name(),
                              first_failure(tuning)));
    return &install(tuning);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::out_of_memory) return nullptr;
    throw;
  }
}

/// Measures, and compiles ahead for TuningOptions::next meanwhile. Without a next problem nothing is compiled any more
/// when it returns, or throws.
Tuning TuningService::measure(const Problem& problem, TuningOptions options) {
  struct Ending {
    TuningService& service;
    bool is_last;
    ~Ending() {
      if (!is_last) return;
      service.ahead_ = {};
      service.next_.clear();
      service.core_.memo().finish_ahead();
    }
  };
  const Ending ending{*this, options.next.empty()};
  options.on_progress = [this, next = options.next, tell = options.on_progress](const TuningProgress& progress) {
    compile_ahead(next);  // not before what is needed now has begun to be compiled
    if (tell) tell(progress);
  };
  return choose_by_measuring(core_.device(), problem, options, core_.memo());
}

/// Begins to compile, in the background, the units that tunings of `next` would compile first, by what is known so far
/// for the first of them, and by the model for the others: asking what is known takes time while nothing is measured.
void TuningService::compile_ahead(const std::vector<Problem>& next) {
  const std::vector<ProblemKey> keys(next.begin(), next.end());
  if (next.empty() || !may_compile_meanwhile(core_.facts()) || next_ == keys) return;
  std::vector<ComingTuning> coming;
  for (const Problem& problem : next) coming.push_back({problem, {}});
  coming.front().options.start_from = nearest_.starts_for(next.front());
  coming.front().options.nearby = nearby(next.front());
  // The memo runs it in threads that may outlive this service, but not the device.
  ahead_ = core_.memo().compile_ahead(
      *core_.device(),
      [&device = *core_.device(), limits = core_.device()->limits(), coming = std::move(coming)] {
        return first_units(device, limits, coming);
      });
  next_ = keys;
}

/// The trials of the last tuning, if it was of the same problem in a shape within kFarthestServed.
std::vector<Trial> TuningService::nearby(const Problem& problem) const {
  if (last_measured_.empty() || shape_distance(problem.extents, last_tuned_.extents) > kFarthestServed) return {};
  Problem same = last_tuned_;
  same.extents = problem.extents;
  return ProblemKey(same) == ProblemKey(problem) ? last_measured_ : std::vector<Trial>();
}

void TuningService::remember(const Tuning& tuning) {
  last_tuned_ = tuning.problem;
  last_measured_.clear();
  for (const Trial& trial : tuning.trials)
    if (trial.samples > 0 && last_measured_.size() < kMostRemembered) last_measured_.push_back(trial);
}

Tuning TuningService::tune(const Problem& problem, TuningOptions options) {
  settle_limits(Limits::measured);
  options.objective = core_.options().objective;
  options.workspace_bytes = std::min(options.workspace_bytes, kWorkspaceBytes);
  for (const Candidate& candidate : nearest_.starts_for(problem)) options.start_from.push_back(candidate);
  if (options.nearby.empty()) options.nearby = nearby(problem);
  Tuning tuning = measure(problem, options);
  remember(tuning);
  if (tuning.winner) install(tuning);
  return tuning;
}

Tuning TuningService::compare(const Problem& problem, TuningOptions options) {
  settle_limits(Limits::stored);
  options.workspace_bytes = std::min(options.workspace_bytes, kWorkspaceBytes);
  return measure(problem, options);
}

void TuningService::adopt(const Tuning& tuning, std::span<const Problem> served) {
  std::vector<Adopted> adopted;
  std::vector<cache::Publication> publications;
  for (const Problem& problem : served) {
    const Adopted& each = adopted.emplace_back(checked_for(problem, tuning));
    const bool is_its_own = problem.extents == tuning.problem.extents;
    publications.push_back(
        core_.cache().publication(problem, each.winner, *each.binary, is_its_own ? &tuning : nullptr));
  }
  for (std::size_t i = 0; i < served.size(); ++i)
    plans_.install(served[i], adopted[i].winner, adopted[i].module, false);
  core_.cache().publish(publications);
}

void TuningService::take_over(const Problem& problem, const Candidate& candidate) {
  const CompiledCode code = load(problem, candidate, problem.family->space().to_string(candidate.policy));
  const Winner winner = make_winner(problem,
                                    {.candidate = candidate,
                                     .resources = code.compiled.resources,
                                     .resident_blocks = code.compiled.resident_blocks},
                                    true);
  plans_.install(problem, winner, code.module, false);
}

/// Throws invalid_argument, which says `whose` candidate it is, where it cannot be launched for the problem.
CompiledCode TuningService::load(const Problem& problem, const Candidate& candidate, const std::string& whose) {
  const Unit unit = unit_of(problem, candidate.policy);
  const CompileOutcome outcome = core_.memo().compile(*core_.device(), std::span(&unit, 1)).front();
  if (!may_launch(core_.facts(), problem, candidate) || !outcome.binary)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} cannot serve {}: {}", whose, to_string(problem),
                            outcome.error.empty() ? "its geometry does not fit" : outcome.error));
  CompiledCode code = load_policy(*core_.device(), problem, candidate.policy, unit, outcome.binary, &core_.memo());
  if (code.compiled.resident_blocks == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} cannot serve {}: no block of it is resident on {}", whose, to_string(problem),
                            core_.device()->name()));
  return code;
}

/// The winner of `tuning` for another problem of the same family. Throws invalid_argument where it cannot serve that.
TuningService::Adopted TuningService::checked_for(const Problem& problem, const Tuning& tuning) {
  const Trial& trial = tuning.trials.at(*tuning.winner);
  const Candidate& candidate = trial.candidate;
  const CompiledCode code = load(problem, candidate, fmt::format("the winner of {}", to_string(tuning.problem)));
  if (problem.extents == tuning.problem.extents) {  // it may be another candidate than the one that the tuning verified
    const std::chrono::milliseconds budget(std::llround((tuning.compile_ms + tuning.measure_ms) / kCheckingPart));
    const Tuning check =
        choose_by_measuring(core_.device(), problem, {.budget = budget, .only = {candidate}}, core_.memo());
    if (!check.winner)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot serve {}: {}", problem.family->space().to_string(candidate.policy),
                              to_string(problem), first_failure(check)));
  }
  Adopted adopted{
      .winner = make_winner(problem, trial, tuning.has_compared()), .module = code.module, .binary = code.binary};
  adopted.winner.resources = code.compiled.resources;
  adopted.winner.resident_blocks = code.compiled.resident_blocks;
  adopted.winner.tuned_extents = tuning.problem.extents;
  return adopted;
}

/// Dispatches to a tuning's winner from now on, and stores it.
const LoadedPlan& TuningService::install(const Tuning& tuning) {
  const bool is_tuned = tuning.has_compared();
  const Winner winner = make_winner(tuning.problem, tuning.trials[*tuning.winner], is_tuned);
  const std::vector<std::string> entries = tuning.problem.family->unit(tuning.problem, winner.candidate.policy).entries;
  const LoadedPlan& plan =
      plans_.install(tuning.problem, winner, core_.memo().load(*core_.device(), *tuning.winner_binary, entries), false);
  // In this order: a publication takes notes that wait to the file with it.
  if (!is_tuned) core_.cache().note_miss(tuning.problem, winner.sizes, false);
  core_.cache().publish(tuning.problem, winner, *tuning.winner_binary, &tuning);
  core_.count(&SessionCounters::tunings);
  return plan;
}

}  // namespace hone
