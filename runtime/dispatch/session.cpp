#include <hone/session.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/dispatch/session_impl.h"

namespace hone {
namespace {

using std::chrono::milliseconds;

/// How long to wait for other writers before tuning without a claim.
constexpr milliseconds kClaimPatience(500);

/// How often to renew a claim, well within its lease.
constexpr milliseconds kRenewal(1000);

/// How often to look whether the owner of a claim is done: soon at first, for a quick one; then so rarely that dozens of
/// waiting processes do not disturb what it measures.
constexpr milliseconds kFirstPause(5);
constexpr milliseconds kLongestPause(200);

Winner make_winner(const Problem& problem, const Trial& trial, bool tuned) {
  Winner winner{.candidate = trial.candidate,
                .resources = trial.resources,
                .resident_blocks = trial.resident_blocks,
                .tuned = tuned,
                .median_us = tuned ? trial.median_us : 0,
                .spread_us = tuned ? trial.spread_us : 0,
                .tuned_extents = problem.extents,
                .sizes = served_sizes(problem)};
  return winner;
}

/// Why a tuning has no winner.
std::string first_failure(const Tuning& tuning) {
  const auto failed = std::find_if(tuning.trials.begin(), tuning.trials.end(), [](const Trial& trial) {
    return trial.verdict == Verdict::wrong || trial.verdict == Verdict::failed;
  });
  if (failed != tuning.trials.end()) return failed->reason;
  return tuning.trials.empty() ? "the family's space is empty" : tuning.trials.front().reason;
}

}  // namespace

Session::Impl::Impl(std::shared_ptr<Device> device, SessionOptions options)
    : device_(std::move(device)),
      options_(std::move(options)),
      workspaces_(device_, options_.capture_workspaces),
      cache_(*device_, options_, [this](const cache::LayerFailure& failure) { count_cache_failure(failure); }) {}

Choice Session::Impl::launch(const Problem& problem, std::span<void* const> buffers, Stream stream) {
  check_buffers(problem, buffers);
  // The smallest class of sizes holds them too; a family says what is wrong with them.
  if (std::any_of(problem.extents.begin(), problem.extents.end(), [](std::int64_t extent) { return extent < 0; }))
    require_accepted(problem);
  Resolved resolved{.plan = plans_.find(ProblemKey(problem))};
  if (!resolved.plan || resolved.plan->is_provisional)
    resolved = resolve(problem, device_->stream_state(stream).capturing);
  const LoadedPlan& plan = *resolved.plan;
  if (plan.needs_workspace) {
    Workspace& workspace = workspaces_.of(device_->stream_state(stream));
    // Another thread's call in this stream must not come between the two launches of this one.
    const std::unique_lock lock = plan.is_one_launch ? std::unique_lock<std::mutex>() : std::unique_lock(workspace.order);
    plan.loaded.enqueue(*device_, problem, buffers, workspace.memory, stream);
  } else {
    plan.loaded.enqueue(*device_, problem, buffers, nullptr, stream);
  }
  return {.source = resolved.source, .winner = &plan.winner};
}

Resolved Session::Impl::resolve(const Problem& problem, bool capturing) {
  require_accepted(problem);
  const std::scoped_lock lock(miss_mutex_);
  const LoadedPlan* known = plans_.find(ProblemKey(problem));
  if (known && (capturing || !known->is_provisional)) return {.plan = known};
  return miss(problem, capturing);
}

Resolved Session::Impl::miss(const Problem& problem, bool capturing) {
  const bool may_tune = options_.on_miss == MissPolicy::tune && !capturing;
  if (const LoadedPlan* plan = load_cached(problem, !may_tune, capturing)) return {plan, ChoiceSource::cache};
  if (options_.on_miss == MissPolicy::error)
    throw Error(ErrorCode::not_tuned,
                fmt::format("no winner serves {} on {} ({}), and the session's policy is to report that; looked in {}; "
                            "tune it with: hone tune {} --op {} --dtype {} --size {}",
                            to_string(problem), device_->name(), device_->facts().name,
                            options_.cache_path.empty() ? "memory only" : options_.cache_path.string(),
                            problem.family->name(), problem.family->operations()[problem.operation],
                            info(problem.dtype).name, problem.extents[0]));
  if (may_tune)
    if (const Resolved tuned = tune_miss(problem); tuned.plan) return tuned;

  const ModelChoice choice = choose_by_model(*device_, problem, WorkspacePool::kWorkspaceBytes, memo_);
  const Winner winner = make_winner(problem, choice.trial, false);
  const LoadedPlan& plan = install(problem, winner, choice.module, capturing);
  cache_.publish(problem, winner, *choice.binary, nullptr);
  cache_.note_miss(problem, winner.sizes, false);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.heuristics;
  return {&plan, ChoiceSource::heuristic};
}

/// Whether a row of the cache says something that this device and a workspace of ours allow.
bool Session::Impl::may_launch(const Problem& problem, const Candidate& candidate) const {
  const std::int64_t blocks = candidate.geometry.max_blocks;
  return problem.family->reject(problem, candidate.variant, device_->facts()).empty() &&
         (blocks == 1 || !problem.family->shape(problem, candidate.variant).one_block) &&
         blocks <= std::numeric_limits<std::int32_t>::max() &&
         problem.family->workspace_bytes(problem, candidate) <= WorkspacePool::kWorkspaceBytes;
}

const LoadedPlan* Session::Impl::load_cached(const Problem& problem, bool untuned_will_do, bool capturing) {
  const std::optional<CachedWinner> cached = cache_.find(problem);
  if (!cached || (!cached->winner.tuned && !untuned_will_do)) return nullptr;
  const std::shared_ptr<const Module> module = load_checked(problem, *cached);
  if (!module) {
    const std::scoped_lock lock(counters_mutex_);
    ++counters_.cache_rejects;
    return nullptr;
  }
  const LoadedPlan& plan = install(problem, cached->winner, module, capturing);
  if (!cached->winner.tuned || cached->stale_driver)
    cache_.note_miss(problem, cached->winner.sizes, cached->winner.tuned);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.cache_hits;
  counters_.stale_hits += cached->stale_driver;
  return &plan;
}

/// The code of a cached winner, compiled where it was not stored; nullptr when row and code do not fit each other.
std::shared_ptr<const Module> Session::Impl::load_checked(const Problem& problem, const CachedWinner& cached) {
  const Winner& winner = cached.winner;
  if (!may_launch(problem, winner.candidate)) return nullptr;
  try {
    const Unit unit = unit_of(problem, winner.candidate.variant);
    std::shared_ptr<const Binary> binary;
    if (cached.binary) {
      binary = std::make_shared<const Binary>(*cached.binary);
    } else {
      binary = memo_.compile(*device_, std::span(&unit, 1)).front().binary;
    }
    if (!binary || binary->architecture != device_->facts().architecture) return nullptr;
    const CompiledCode code = load_variant(*device_, problem, winner.candidate.variant, unit, binary);
    const bool fits = code.compiled.resources == winner.resources && code.compiled.resident_blocks > 0;
    return fits ? code.module : nullptr;
  } catch (const Error& error) {
    count_cache_failure({.message = error.what()});
    return nullptr;
  }
}

/// Tunes, unless another process is at it: then waits for its winner as long as tuning may take. No plan when the wait
/// was in vain, and when there is too little memory to measure in: the heuristic needs none.
Resolved Session::Impl::tune_miss(const Problem& problem) {
  const auto end = std::chrono::steady_clock::now() + options_.tune_budget;
  const auto patience = std::min(options_.tune_budget, kClaimPatience);
  for (bool has_waited = false;; has_waited = true) {
    const std::optional<cache::ClaimState> state = cache_.claim(problem, patience);
    if (state == cache::ClaimState::served)
      if (const LoadedPlan* plan = load_cached(problem, false, false)) return {plan, ChoiceSource::cache};
    if (state != cache::ClaimState::held) return {tune_claimed(problem, state.has_value()), ChoiceSource::tuned};
    if (!has_waited) {
      const std::scoped_lock lock(counters_mutex_);
      ++counters_.waits;
    }
    auto pause = kFirstPause;
    do {
      if (std::chrono::steady_clock::now() >= end) return {};
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    } while (cache_.is_claimed(problem));
  }
}

/// nullptr when there is too little memory to measure in.
const LoadedPlan* Session::Impl::tune_claimed(const Problem& problem, bool is_claimed) {
  using Clock = std::chrono::steady_clock;
  TuningOptions options{.budget = options_.tune_budget, .workspace_bytes = WorkspacePool::kWorkspaceBytes};
  // Between two steps, so that no file is open while something is measured.
  options.on_progress = [&, renewed = Clock::now()](const TuningProgress&) mutable {
    if (!is_claimed || Clock::now() - renewed < kRenewal) return;
    cache_.renew(problem);
    renewed = Clock::now();
  };
  try {
    const Tuning tuning = choose_by_measuring(device_, problem, options, memo_);
    if (!tuning.winner)
      throw Error(ErrorCode::device_failed, fmt::format("no candidate for {} works on {}: {}", to_string(problem),
                                                        device_->name(), first_failure(tuning)));
    return &adopt(tuning);
  } catch (const Error& error) {
    if (is_claimed) cache_.release(problem);
    if (error.code() == ErrorCode::out_of_memory) return nullptr;
    throw;
  }
}

Tuning Session::Impl::tune(const Problem& problem, TuningOptions options) {
  options.workspace_bytes = std::min(options.workspace_bytes, WorkspacePool::kWorkspaceBytes);
  const std::scoped_lock lock(miss_mutex_);
  Tuning tuning = choose_by_measuring(device_, problem, options, memo_);
  if (tuning.winner) adopt(tuning);
  return tuning;
}

/// Dispatches to a tuning's winner from now on, and stores it.
const LoadedPlan& Session::Impl::adopt(const Tuning& tuning) {
  const Winner winner = make_winner(tuning.problem, tuning.trials[*tuning.winner], true);
  const LoadedPlan& plan = install(tuning.problem, winner, load(tuning.problem, winner, *tuning.winner_binary), false);
  cache_.publish(tuning.problem, winner, *tuning.winner_binary, &tuning);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.tunings;
  return plan;
}

std::shared_ptr<const Module> Session::Impl::load(const Problem& problem, const Winner& winner, const Binary& binary) {
  return device_->load(binary, problem.family->unit(problem, winner.candidate.variant).entries);
}

const LoadedPlan& Session::Impl::install(const Problem& problem, const Winner& winner,
                                         std::shared_ptr<const Module> module, bool capturing) {
  LoadedPlan plan{.winner = winner,
                  .loaded = {winner.candidate, std::move(module)},
                  .needs_workspace = problem.family->workspace_bytes(problem, winner.candidate) > 0,
                  .is_one_launch = problem.family->shape(problem, winner.candidate.variant).launches == 1,
                  .is_provisional = !winner.tuned && options_.on_miss == MissPolicy::tune && capturing};
  return plans_.insert(ProblemKey(problem), std::move(plan));
}

void Session::Impl::check_buffers(const Problem& problem, std::span<void* const> buffers) const {
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i])
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: buffer {} is null; pass memory of {}", to_string(problem), i, device_->name()));
  if (!options_.validate_pointers) return;

  require_accepted(problem);
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  if (specs.size() != buffers.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} takes {} buffers, {} were passed", to_string(problem),
                                                         specs.size(), buffers.size()));
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferSpec& spec = specs[i];
    if (spec.elements == 0) continue;
    const std::size_t alignment = spec.is_input ? problem.alignment : info(spec.dtype).size_bytes;
    if (alignment_of(buffers[i]) < alignment)
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' at {} is not aligned to {} bytes",
                                                           to_string(problem), spec.name, buffers[i], alignment));
    if (device_->memory_kind(buffers[i]) != MemoryKind::device)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' at {} is host memory; copy it to {} first", to_string(problem), spec.name,
                              buffers[i], device_->name()));
  }
}

SessionCounters Session::Impl::counters() const {
  const std::scoped_lock lock(counters_mutex_);
  SessionCounters counters = counters_;
  counters.compiles = memo_.compiled();
  counters.cache_rejects += cache_.rejects();
  counters.caches_left_out = cache_.left_out();
  return counters;
}

void Session::Impl::count_cache_failure(const cache::LayerFailure& failure) {
  {
    const std::scoped_lock lock(counters_mutex_);
    ++counters_.cache_failures;
    counters_.last_cache_failure = failure.message;
  }
  if (failure.is_first && options_.report_cache_failure) options_.report_cache_failure(failure.message);
}

Session::Session(std::shared_ptr<Device> device, SessionOptions options)
    : impl_(std::make_unique<Impl>(std::move(device), std::move(options))) {}
Session::~Session() = default;

Choice Session::launch(const Problem& problem, std::span<void* const> buffers, Stream stream) {
  return impl_->launch(problem, buffers, stream);
}

Choice Session::prepare(const Problem& problem) {
  const Resolved resolved = impl_->resolve(problem, false);
  return {.source = resolved.source, .winner = &resolved.plan->winner};
}

Tuning Session::tune(const Problem& problem, const TuningOptions& options) { return impl_->tune(problem, options); }

const std::shared_ptr<Device>& Session::device() const { return impl_->device(); }
const SessionOptions& Session::options() const { return impl_->options(); }
SessionCounters Session::counters() const { return impl_->counters(); }

}  // namespace hone
