// How a session tunes: once among all processes that miss the same problem, unless it was told to.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/choose/exploration.h"
#include "runtime/dispatch/session_impl.h"
#include "runtime/search/model.h"

namespace hone {
namespace {

using std::chrono::milliseconds;

/// How long others' tuning of a problem is waited for, in budgets: most end within one.
constexpr int kBudgetsToWait = 2;

/// How long to wait for other writers with a claim: dozens of processes may start at once.
constexpr milliseconds kClaimPatience(5000);

/// How often to renew a claim, well within its lease.
constexpr milliseconds kRenewal(10000);

/// How often to look whether the owner of a claim is done: soon at first, for a quick one; then so rarely that dozens
/// of waiting processes do not disturb what it measures.
constexpr milliseconds kFirstPause(5);
constexpr milliseconds kLongestPause(200);

/// How long to wait for another process's choice without measuring: for the compiler, on a busy machine.
constexpr milliseconds kChoicePatience(10000);

/// Ends a claim, whatever ends the work.
class Claimed {
 public:
  Claimed(CacheBridge& cache, Work work, const Problem& problem) : cache_(cache), work_(work), problem_(problem) {}
  ~Claimed() { cache_.release(work_, problem_); }
  Claimed(const Claimed&) = delete;
  Claimed& operator=(const Claimed&) = delete;

 private:
  CacheBridge& cache_;
  Work work_;
  const Problem& problem_;
};

/// Why a tuning has no winner.
std::string first_failure(const Tuning& tuning) {
  const auto failed = std::find_if(tuning.trials.begin(), tuning.trials.end(), [](const Trial& trial) {
    return trial.verdict == Verdict::wrong || trial.verdict == Verdict::failed;
  });
  if (failed != tuning.trials.end()) return failed->reason;
  return tuning.trials.empty() ? "the family's space is empty" : tuning.trials.front().reason;
}

}  // namespace

/// Tunes, unless another process is at it: then waits for what that finds. nullopt when it takes longer than a tuning
/// may; at once for a makeshift, which has waited. No plan where there is too little memory to measure in: the
/// heuristic needs none. `has_misfit`: the winner that the cache has cannot be used here.
std::optional<Resolved> Session::Impl::tune_miss(const Problem& problem, bool has_misfit) {
  const bool has_makeshift = plans_.find(ProblemKey(problem)) != nullptr;
  const auto end = Clock::now() + (has_makeshift ? milliseconds::zero() : kBudgetsToWait * options_.tune_budget);
  for (bool even_if_served = has_misfit, has_waited = false;;) {
    // Reading first: dozens of processes that all write keep each other out.
    if (cache_.is_claimed(Work::tuning, problem)) {
      if (!std::exchange(has_waited, true)) count_wait();
      if (!wait_for(Work::tuning, problem, end)) return std::nullopt;
      const CachedPlan cached = load_cached(problem, false);
      if (const Resolved found = use_cached(problem, cached); found.plan) return found;
      even_if_served = cached.is_misfit;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    const auto patience = std::clamp(left, milliseconds::zero(), kClaimPatience);
    const auto state = cache_.claim(Work::tuning, problem, even_if_served, patience);
    if (state == cache::ClaimState::locked) return std::nullopt;
    if (!state || state == cache::ClaimState::taken) {
      const LoadedPlan* const plan = tune_claimed(problem, state.has_value());
      return Resolved{plan, plan && plan->winner.tuned ? ChoiceSource::tuned : ChoiceSource::heuristic};
    }
    if (state == cache::ClaimState::served) {
      const CachedPlan cached = load_cached(problem, false);
      if (const Resolved found = use_cached(problem, cached); found.plan) return found;
      even_if_served = cached.is_misfit || cached.untuned;
      if (!even_if_served && Clock::now() >= end) return std::nullopt;  // the file is locked again
    }
  }
}

/// Until nobody has claimed the work on `problem`; false when that is still so at `end`.
bool Session::Impl::wait_for(Work work, const Problem& problem, Clock::time_point end) {
  auto pause = kFirstPause;
  do {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  } while (cache_.is_claimed(work, problem));
  return true;
}

/// The model's choice, which one process alone compiles while others wait for it.
Resolved Session::Impl::choose_once(const Problem& problem) {
  const auto end = Clock::now() + kChoicePatience;
  std::optional<Claimed> claimed;
  while (!claimed) {
    if (cache_.is_claimed(Work::choice, problem)) {
      const bool is_done = wait_for(Work::choice, problem, end);
      const CachedPlan cached = load_cached(problem, false);
      if (cached.plan) return {cached.plan, ChoiceSource::cache};
      if (cached.untuned)
        if (const LoadedPlan* const plan = load_cached(problem, *cached.untuned, false))
          return {plan, ChoiceSource::cache};
      if (!is_done) break;
    }
    const auto state = cache_.claim(Work::choice, problem, true, kClaimPatience);
    if (state == cache::ClaimState::taken) claimed.emplace(cache_, Work::choice, problem);
    else if (state != cache::ClaimState::held) break;
  }
  return {&choose_heuristic(problem, false), ChoiceSource::heuristic};
}

void Session::Impl::count_wait() {
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.waits;
}

/// nullptr when there is too little memory to measure in.
const LoadedPlan* Session::Impl::tune_claimed(const Problem& problem, bool is_claimed) {
  TuningOptions options{.budget = options_.tune_budget,
                        .workspace_bytes = kWorkspaceBytes,
                        .start_from = starts_for(problem),
                        .nearby = nearby(problem)};
  std::optional<Claimed> claimed;
  if (is_claimed) claimed.emplace(cache_, Work::tuning, problem);
  // Between two steps, so that no file is open while something is measured.
  options.on_progress = [&, renewed = Clock::now()](const TuningProgress&) mutable {
    if (!is_claimed || Clock::now() - renewed < kRenewal) return;
    cache_.renew(Work::tuning, problem);
    renewed = Clock::now();
  };
  try {
    const Tuning tuning = measure(problem, options);
    remember(tuning);
    if (!tuning.winner)
      throw Error(tuning.has_compiled ? ErrorCode::device_failed : ErrorCode::compile_failed,
                  fmt::format("no candidate for {} {} {}: {}", to_string(problem),
                              tuning.has_compiled ? "works on" : "compiles for", device_->name(),
                              first_failure(tuning)));
    return &adopt(tuning, tuning.has_compared());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::out_of_memory) return nullptr;
    throw;
  }
}

/// Where nothing is next, nothing is compiled any more when it returns, or throws. What this problem needs first is
/// compiled before anything of the next one.
Tuning Session::Impl::measure(const Problem& problem, TuningOptions options) {
  struct Ending {
    Impl& session;
    bool is_last;
    ~Ending() {
      if (!is_last) return;
      session.ahead_ = {};
      session.next_.reset();
      session.memo_.finish_ahead();
    }
  };
  const Ending ending{*this, !options.next};
  options.on_progress = [this, next = options.next, tell = options.on_progress](const TuningProgress& progress) {
    if (progress.phase == TuningPhase::measuring) compile_ahead(next);
    if (tell) tell(progress);
  };
  return choose_by_measuring(device_, problem, options, memo_);
}

/// Compiles what a tuning of `next` would compile first by what is known so far, until another one is next.
void Session::Impl::compile_ahead(const std::optional<Problem>& next) {
  if (!next || !may_compile_meanwhile(device_->facts()) || next_ == ProblemKey(*next)) return;
  TuningOptions options{.start_from = starts_for(*next), .nearby = nearby(*next)};
  ahead_ = memo_.compile_ahead(*device_, [this, next = *next, options = std::move(options)] {
    return first_units(device_->facts(), next, options);
  });
  next_ = ProblemKey(*next);
}

Tuning Session::Impl::tune(const Problem& problem, TuningOptions options) {
  options.workspace_bytes = std::min(options.workspace_bytes, kWorkspaceBytes);
  const std::scoped_lock lock(miss_mutex_);
  for (const Candidate& candidate : starts_for(problem)) options.start_from.push_back(candidate);
  if (options.nearby.empty()) options.nearby = nearby(problem);
  Tuning tuning = measure(problem, options);
  remember(tuning);
  if (tuning.winner) adopt(tuning, tuning.has_compared());
  return tuning;
}

Tuning Session::Impl::compare(const Problem& problem, TuningOptions options) {
  if (options.only.empty())
    throw Error(ErrorCode::invalid_argument, "TuningOptions::only names no candidate to compare");
  options.workspace_bytes = std::min(options.workspace_bytes, kWorkspaceBytes);
  const std::scoped_lock lock(miss_mutex_);
  return measure(problem, options);
}

void Session::Impl::adopt(const Tuning& tuning, std::span<const Problem> served) {
  if (!tuning.winner) throw Error(ErrorCode::invalid_argument, "a tuning without a winner cannot be adopted");
  const std::scoped_lock lock(miss_mutex_);
  const Trial& trial = tuning.trials.at(*tuning.winner);
  std::vector<Winner> winners;
  std::vector<std::shared_ptr<const Module>> modules;
  std::vector<cache::Publication> publications;
  for (const Problem& problem : served) {
    const bool is_its_own = problem.extents == tuning.problem.extents;
    const Unit unit = unit_of(problem, trial.candidate.policy);
    const CompileOutcome outcome = memo_.compile(*device_, std::span(&unit, 1)).front();
    if (!may_launch(problem, trial.candidate) || !outcome.binary)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the winner of {} cannot serve {}: {}", to_string(tuning.problem), to_string(problem),
                              outcome.error.empty() ? "its geometry does not fit" : outcome.error));
    if (is_its_own) {  // it may be another candidate than the one that the tuning verified
      const Tuning check = choose_by_measuring(device_, problem, {.only = {trial.candidate}}, memo_);
      if (!check.winner)
        throw Error(ErrorCode::invalid_argument, fmt::format("{} cannot serve {}: {}",
                                                             problem.family->space().to_string(trial.candidate.policy),
                                                             to_string(problem), first_failure(check)));
    }
    const CompiledCode code = load_policy(*device_, problem, trial.candidate.policy, unit, outcome.binary);
    Winner& winner = winners.emplace_back(make_winner(problem, trial, tuning.has_compared()));
    winner.resources = code.compiled.resources;
    winner.resident_blocks = code.compiled.resident_blocks;
    winner.tuned_extents = tuning.problem.extents;
    modules.push_back(code.module);
    publications.push_back(cache_.publication(problem, winner, *outcome.binary, is_its_own ? &tuning : nullptr));
  }
  for (std::size_t i = 0; i < served.size(); ++i) install(served[i], winners[i], modules[i], false);
  cache_.publish(publications);
}

/// Dispatches to a tuning's winner from now on, and stores it.
const LoadedPlan& Session::Impl::adopt(const Tuning& tuning, bool is_tuned) {
  const Winner winner = make_winner(tuning.problem, tuning.trials[*tuning.winner], is_tuned);
  const LoadedPlan& plan = install(tuning.problem, winner, load(tuning.problem, winner, *tuning.winner_binary), false);
  // In this order: a publication takes notes that wait to the file with it.
  if (!is_tuned) cache_.note_miss(tuning.problem, winner.sizes, false);
  cache_.publish(tuning.problem, winner, *tuning.winner_binary, &tuning);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.tunings;
  return plan;
}

std::shared_ptr<const Module> Session::Impl::load(const Problem& problem, const Winner& winner, const Binary& binary) {
  return device_->load(binary, problem.family->unit(problem, winner.candidate.policy).entries);
}

}  // namespace hone
