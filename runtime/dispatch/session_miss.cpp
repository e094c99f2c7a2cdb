// What a session does with a problem that it has no plan for: the cache files, the stream's winner, the nearest
// shape's, the model.
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/tune_arguments.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/dispatch/session_impl.h"

namespace hone {
namespace {

/// How rarely to look for what another process is tuning.
constexpr std::chrono::hours kLongestRetryPause(1);

}  // namespace

Winner make_winner(const Problem& problem, const Trial& trial, bool tuned) {
  Winner winner{.candidate = trial.candidate,
                .resources = trial.resources,
                .resident_blocks = trial.resident_blocks,
                .tuned = tuned,
                .median_us = tuned ? trial.median_us : 0,
                .spread_us = tuned ? trial.spread_us : 0,
                .launch_context = problem.launch_context,
                .tuned_extents = problem.extents,
                .sizes = size_ranges(problem.extents)};
  return winner;
}

Resolved Session::Impl::miss(const Problem& problem, bool capturing) {
  const CachedPlan cached = load_cached(problem, capturing);
  if (cached.plan) return {cached.plan, ChoiceSource::cache};
  if (options_.on_miss == MissPolicy::tune && !capturing) {
    if (const Resolved found = use_cached(problem, cached); found.plan) return found;
    const std::optional<Resolved> tuned = tune_miss(problem, cached.is_misfit);
    if (!tuned) return postpone(problem);
    if (tuned->plan) return *tuned;
  }
  if (const Resolved found = choose_unmeasured(problem, cached.untuned, capturing); found.plan) return found;
  if (options_.on_miss == MissPolicy::error) throw not_tuned(problem);
  return {&choose_heuristic(problem, capturing), ChoiceSource::heuristic};
}

/// What makes a tuning needless: a tuned winner, or what a tuning left that had no less time. No plan otherwise.
Resolved Session::Impl::use_cached(const Problem& problem, const CachedPlan& cached) {
  if (cached.plan) return {cached.plan, ChoiceSource::cache};
  if (!cached.untuned || !cached.untuned->is_attempted) return {};
  return {load_cached(problem, *cached.untuned, false), ChoiceSource::cache};
}

/// Makes do, while another process is tuning the problem, and looks for its winner later: first after the time that a
/// tuning may take, then more and more rarely.
Resolved Session::Impl::postpone(const Problem& problem) {
  Resolved makeshift{.plan = plans_.find(ProblemKey(problem))};
  if (!makeshift.plan) {
    const CachedPlan cached = load_cached(problem, false);
    if (cached.plan) return {cached.plan, ChoiceSource::cache};
    makeshift = choose_unmeasured(problem, cached.untuned, false);
    if (!makeshift.plan) makeshift = choose_once(problem);
  }
  LoadedPlan plan = *makeshift.plan;
  plan.is_provisional = true;
  plan.retry_pause = std::min<Clock::duration>(2 * plan.retry_pause, kLongestRetryPause);
  plan.retry_pause = std::max<Clock::duration>(plan.retry_pause, options_.tune_budget);
  plan.retry_at = Clock::now() + plan.retry_pause;
  return {&plans_.insert(ProblemKey(problem), std::move(plan)), makeshift.source};
}

/// A winner of the stream for the graph, of the nearest shape, or of an earlier choice without measuring. No plan when
/// there is none.
Resolved Session::Impl::choose_unmeasured(const Problem& problem, const std::optional<CachedWinner>& untuned,
                                          bool capturing) {
  const bool may_lend =
      problem.launch_context == LaunchContext::graph && (capturing || options_.on_miss != MissPolicy::error);
  if (may_lend)
    if (const Resolved lent = lend_stream_winner(problem); lent.plan) return lent;
  return choose_untuned(problem, untuned, capturing);
}

/// Without measuring: the nearest shape's winner, else what an earlier session chose without measuring. No plan when
/// there is neither. Under MissPolicy::error nothing new is chosen.
Resolved Session::Impl::choose_untuned(const Problem& problem, const std::optional<CachedWinner>& untuned,
                                       bool capturing) {
  std::vector<Winner> lenders;
  if (options_.on_miss != MissPolicy::error) lenders = lenders_for(problem);
  const bool is_stored =
      untuned && !lenders.empty() && lenders.front().candidate == untuned->winner.candidate;
  if (!is_stored)
    for (const Winner& lender : lenders)
      if (const LoadedPlan* plan = borrow(problem, lender, capturing)) return {plan, ChoiceSource::nearest};
  if (untuned)
    if (const LoadedPlan* plan = load_cached(problem, *untuned, capturing)) return {plan, ChoiceSource::cache};
  return {};
}

/// The occupancy model's first choice, stored as untuned.
const LoadedPlan& Session::Impl::choose_heuristic(const Problem& problem, bool capturing) {
  const ModelChoice choice = choose_by_model(*device_, problem, kWorkspaceBytes, memo_);
  const Winner winner = make_winner(problem, choice.trial, false);
  const LoadedPlan& plan = install(problem, winner, choice.module, capturing);
  cache_.publish(problem, winner, *choice.binary, nullptr);
  cache_.note_miss(problem, winner.sizes, false);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.heuristics;
  return plan;
}

Error Session::Impl::not_tuned(const Problem& problem) const {
  const std::string path = options_.cache_path.string(), arguments = tune_arguments(problem);
  const std::string advice = arguments.empty() || path.empty()
                                 ? "tune it with Session::tune()"
                                 : fmt::format("tune it with: hone tune {} --device {} --cache {}", arguments,
                                               device_->name(), shell_quoted(path));
  return Error(
      ErrorCode::not_tuned,
      fmt::format("no winner serves {} on {} ({}), and the session's policy is to report that; looked in {}; {}",
                  to_string(problem), device_->name(), device_->facts().name, path.empty() ? "memory only" : path,
                  advice));
}

/// Serves a graph problem with what was tuned for the stream, where nothing was tuned for the graph.
Resolved Session::Impl::lend_stream_winner(const Problem& graph_problem) {
  const Problem stream_problem = in_context(graph_problem, LaunchContext::stream);
  Resolved lender{.plan = plans_.find(ProblemKey(stream_problem))};
  if (!lender.plan || !lender.plan->winner.tuned)
    lender = {load_cached(stream_problem, false).plan, ChoiceSource::cache};
  if (!lender.plan) return {};
  LoadedPlan lent = *lender.plan;
  lent.is_provisional = options_.on_miss == MissPolicy::tune;
  return {&plans_.insert(ProblemKey(graph_problem), std::move(lent)), lender.source};
}

/// Whether a row of the cache says something that this device and a workspace of ours allow. Asked of the class, so
/// that a winner serves all of its members or none.
bool Session::Impl::may_launch(const ProblemClass& problem_class, const Candidate& candidate) const {
  const KernelFamily& family = problem_class.family();
  const std::int64_t blocks = candidate.geometry.max_blocks;
  const WorkShape shape = family.shape(problem_class.typical(), candidate.policy);
  return family.is_valid(problem_class, candidate.policy, device_->facts()).empty() &&
         (!shape.one_block || blocks == shape.cluster_blocks) && blocks <= std::numeric_limits<std::int32_t>::max() &&
         family.workspace_bytes(problem_class, candidate) <= kWorkspaceBytes;
}

/// A tuned winner is loaded; an untuned one is only found.
CachedPlan Session::Impl::load_cached(const Problem& problem, bool capturing) {
  const std::uint64_t misfits = cache_.misfits();
  std::optional<CachedWinner> cached = cache_.find(problem);
  if (!cached) return {.is_misfit = cache_.misfits() != misfits};
  if (!cached->winner.tuned) return {.untuned = std::move(cached)};
  const LoadedPlan* plan = load_cached(problem, *cached, capturing);
  return {.plan = plan, .is_misfit = plan == nullptr};
}

/// nullptr when row and code do not fit each other or this device.
const LoadedPlan* Session::Impl::load_cached(const Problem& problem, const CachedWinner& cached, bool capturing) {
  const std::shared_ptr<const Module> module = load_checked(problem, cached);
  if (!module) {
    const std::scoped_lock lock(counters_mutex_);
    ++counters_.cache_rejects;
    return nullptr;
  }
  const LoadedPlan& plan = install(problem, cached.winner, module, capturing);
  if (!cached.winner.tuned || cached.stale_driver) cache_.note_miss(problem, cached.winner.sizes, cached.winner.tuned);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.cache_hits;
  counters_.stale_hits += cached.stale_driver;
  return &plan;
}

/// The code of a cached winner, compiled where it was not stored; nullptr when row and code do not fit each other.
std::shared_ptr<const Module> Session::Impl::load_checked(const Problem& problem, const CachedWinner& cached) {
  const Winner& winner = cached.winner;
  if (!may_launch(problem, winner.candidate)) return nullptr;
  try {
    const Unit unit = unit_of(problem, winner.candidate.policy);
    std::shared_ptr<const Binary> binary;
    if (cached.binary) {
      if (cached.unit_digest != unit_digest(unit)) return nullptr;  // the family makes another kernel by now
      binary = std::make_shared<const Binary>(*cached.binary);
    } else {
      binary = memo_.compile(*device_, std::span(&unit, 1)).front().binary;
    }
    if (!binary || binary->architecture != device_->facts().architecture) return nullptr;
    const CompiledCode code = load_policy(*device_, problem, winner.candidate.policy, unit, binary);
    const bool fits = code.compiled.resources == winner.resources && code.compiled.resident_blocks > 0;
    return fits ? code.module : nullptr;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    count_cache_failure({.message = error.what()});
    return nullptr;
  }
}

}  // namespace hone
