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
#include "runtime/choose/exploration.h"
#include "runtime/dispatch/session_impl.h"

namespace hone {
namespace {

using std::chrono::milliseconds;

/// How long to wait for other writers before tuning without a claim: dozens of processes may start at once.
constexpr milliseconds kClaimPatience(5000);

/// That compiling ahead leaves to the thread that enqueues what is timed, and to the driver's.
constexpr std::size_t kSpareCores = 2;

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
                .launch_context = problem.launch_context,
                .tuned_extents = problem.extents,
                .sizes = served_sizes(problem)};
  return winner;
}

Problem in_context(Problem problem, LaunchContext context) {
  problem.launch_context = context;
  return problem;
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

Choice Session::Impl::launch(const Problem& asked, std::span<void* const> buffers, Stream stream) {
  const StreamState state = device_->stream_state(stream);
  const Problem problem = state.capturing ? in_context(asked, LaunchContext::graph) : asked;
  check_buffers(problem, buffers);
  // The smallest class of sizes holds them too; a family says what is wrong with them.
  if (std::any_of(problem.extents.begin(), problem.extents.end(), [](std::int64_t extent) { return extent < 0; }))
    require_accepted(problem);
  Resolved resolved{.plan = plans_.find(ProblemKey(problem))};
  if (!resolved.plan || resolved.plan->is_provisional)
    resolved = resolve(problem, state.capturing);
  const LoadedPlan& plan = *resolved.plan;
  if (plan.needs_workspace) {
    Workspace& workspace = workspaces_.of(state);
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
  const bool may_lend =
      problem.launch_context == LaunchContext::graph && (capturing || options_.on_miss != MissPolicy::error);
  const bool untuned_will_do = !may_tune && !may_lend;
  const CachedPlan cached = load_cached(problem, untuned_will_do, capturing);
  if (cached.plan) return {cached.plan, ChoiceSource::cache};
  if (may_tune)
    if (const Resolved tuned = tune_miss(problem, cached.is_misfit); tuned.plan) return tuned;
  if (may_lend) {
    if (const Resolved lent = lend_stream_winner(problem); lent.plan) return lent;
    if (const CachedPlan untuned = load_cached(problem, true, capturing); untuned.plan)
      return {untuned.plan, ChoiceSource::cache};
  }
  if (options_.on_miss == MissPolicy::error)
    throw Error(ErrorCode::not_tuned,
                fmt::format("no winner serves {} on {} ({}), and the session's policy is to report that; looked in {}; "
                            "tune it with: hone tune {} --op {} --dtype {} --size {} --context {}",
                            to_string(problem), device_->name(), device_->facts().name,
                            options_.cache_path.empty() ? "memory only" : options_.cache_path.string(),
                            problem.family->name(), problem.family->operations()[problem.operation],
                            info(problem.dtype).name, problem.extents[0], name(problem.launch_context)));

  const ModelChoice choice = choose_by_model(*device_, problem, WorkspacePool::kWorkspaceBytes, memo_);
  const Winner winner = make_winner(problem, choice.trial, false);
  const LoadedPlan& plan = install(problem, winner, choice.module, capturing);
  cache_.publish(problem, winner, *choice.binary, nullptr);
  cache_.note_miss(problem, winner.sizes, false);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.heuristics;
  return {&plan, ChoiceSource::heuristic};
}

/// Serves a graph problem with what was tuned for the stream, where nothing was tuned for the graph.
Resolved Session::Impl::lend_stream_winner(const Problem& graph_problem) {
  const Problem stream_problem = in_context(graph_problem, LaunchContext::stream);
  Resolved lender{.plan = plans_.find(ProblemKey(stream_problem))};
  if (!lender.plan || !lender.plan->winner.tuned)
    lender = {load_cached(stream_problem, false, false).plan, ChoiceSource::cache};
  if (!lender.plan) return {};
  LoadedPlan lent = *lender.plan;
  lent.is_provisional = options_.on_miss == MissPolicy::tune;
  return {&plans_.insert(ProblemKey(graph_problem), std::move(lent)), lender.source};
}

/// Whether a row of the cache says something that this device and a workspace of ours allow.
bool Session::Impl::may_launch(const Problem& problem, const Candidate& candidate) const {
  const std::int64_t blocks = candidate.geometry.max_blocks;
  const WorkShape shape = problem.family->shape(problem, candidate.variant);
  return problem.family->reject(problem, candidate.variant, device_->facts()).empty() &&
         (!shape.one_block || blocks == shape.cluster_blocks) &&
         blocks <= std::numeric_limits<std::int32_t>::max() &&
         problem.family->workspace_bytes(problem, candidate) <= WorkspacePool::kWorkspaceBytes;
}

CachedPlan Session::Impl::load_cached(const Problem& problem, bool untuned_will_do, bool capturing) {
  const std::uint64_t misfits = cache_.misfits();
  const std::optional<CachedWinner> cached = cache_.find(problem);
  if (!cached) return {.is_misfit = cache_.misfits() != misfits};
  if (!cached->winner.tuned && !untuned_will_do) return {};
  const std::shared_ptr<const Module> module = load_checked(problem, *cached);
  if (!module) {
    const std::scoped_lock lock(counters_mutex_);
    ++counters_.cache_rejects;
    return {.is_misfit = true};
  }
  const LoadedPlan& plan = install(problem, cached->winner, module, capturing);
  if (!cached->winner.tuned || cached->stale_driver)
    cache_.note_miss(problem, cached->winner.sizes, cached->winner.tuned);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.cache_hits;
  counters_.stale_hits += cached->stale_driver;
  return {.plan = &plan};
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

/// Tuned winners of the sizes around, the nearest first, and of the same size in the other launch context.
std::vector<Candidate> Session::Impl::neighbours_of(const Problem& problem) const {
  std::vector<Candidate> candidates;
  const auto add = [&](const Problem& neighbour) {
    const LoadedPlan* plan = plans_.find(ProblemKey(neighbour));
    if (plan && plan->winner.tuned && plan->winner.launch_context == neighbour.launch_context)
      candidates.push_back(plan->winner.candidate);
  };
  for (int distance : {-1, 1, -2, 2}) {
    const int neighbour_class = size_class(problem.extents[0]) + distance;
    if (neighbour_class < kSmallestSizeClass || neighbour_class > kLargestSizeClass) continue;
    Problem neighbour = problem;
    neighbour.extents[0] = size_range(neighbour_class).first;
    add(neighbour);
  }
  const bool is_stream = problem.launch_context == LaunchContext::stream;
  add(in_context(problem, is_stream ? LaunchContext::graph : LaunchContext::stream));
  return candidates;
}

/// Tunes, unless another process is at it: then waits for its winner as long as tuning may take. No plan when the wait
/// was in vain, and when there is too little memory to measure in: the heuristic needs none. `has_misfit`: the winner
/// that the cache has cannot be used here.
Resolved Session::Impl::tune_miss(const Problem& problem, bool has_misfit) {
  const auto end = std::chrono::steady_clock::now() + options_.tune_budget;
  const auto patience = std::min(options_.tune_budget, kClaimPatience);
  for (bool has_waited = false;; has_waited = true) {
    const std::optional<cache::ClaimState> state = cache_.claim(problem, has_misfit && !has_waited, patience);
    bool must_wait = state == cache::ClaimState::held;
    if (state == cache::ClaimState::served) {
      const CachedPlan cached = load_cached(problem, false, false);
      if (cached.plan) return {cached.plan, ChoiceSource::cache};
      must_wait = !cached.is_misfit;  // the file is locked again
    }
    if (!must_wait) return {tune_claimed(problem, state == cache::ClaimState::taken), ChoiceSource::tuned};
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
  TuningOptions options{.budget = options_.tune_budget,
                        .workspace_bytes = WorkspacePool::kWorkspaceBytes,
                        .start_from = neighbours_of(problem)};
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
    return &adopt(tuning, true);
  } catch (const Error& error) {
    if (is_claimed) cache_.release(problem);
    if (error.code() == ErrorCode::out_of_memory) return nullptr;
    throw;
  }
}

Tuning Session::Impl::tune(const Problem& problem, TuningOptions options) {
  options.workspace_bytes = std::min(options.workspace_bytes, WorkspacePool::kWorkspaceBytes);
  const std::scoped_lock lock(miss_mutex_);
  for (const Candidate& candidate : neighbours_of(problem)) options.start_from.push_back(candidate);
  Tuning tuning = choose_by_measuring(device_, problem, options, memo_);
  if (tuning.winner) adopt(tuning, tuning.has_compared());
  return tuning;
}

Tuning Session::Impl::compare(const Problem& problem, TuningOptions options) {
  if (options.only.empty()) throw Error(ErrorCode::invalid_argument, "TuningOptions::only names no candidate to compare");
  options.workspace_bytes = std::min(options.workspace_bytes, WorkspacePool::kWorkspaceBytes);
  const std::scoped_lock lock(miss_mutex_);
  return choose_by_measuring(device_, problem, options, memo_);
}

void Session::Impl::adopt(const Tuning& tuning, std::span<const Problem> served) {
  if (!tuning.winner) throw Error(ErrorCode::invalid_argument, "a tuning without a winner cannot be adopted");
  const std::scoped_lock lock(miss_mutex_);
  for (const Problem& problem : served) {
    const bool is_its_own = problem.extents == tuning.problem.extents;
    const Trial& trial = tuning.trials.at(*tuning.winner);
    const Unit unit = unit_of(problem, trial.candidate.variant);
    const CompileOutcome outcome = memo_.compile(*device_, std::span(&unit, 1)).front();
    if (!may_launch(problem, trial.candidate) || !outcome.binary)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the winner of {} cannot serve {}: {}", to_string(tuning.problem), to_string(problem),
                              outcome.error.empty() ? "its geometry does not fit" : outcome.error));
    const CompiledCode code = load_variant(*device_, problem, trial.candidate.variant, unit, outcome.binary);
    Winner winner = make_winner(problem, trial, true);
    winner.resources = code.compiled.resources;
    winner.resident_blocks = code.compiled.resident_blocks;
    winner.tuned_extents = tuning.problem.extents;
    install(problem, winner, code.module, false);
    cache_.publish(problem, winner, *outcome.binary, is_its_own ? &tuning : nullptr);
  }
}

void Session::Impl::compile_ahead(const Problem& problem, std::stop_token stop) {
  const std::vector<Unit> units = first_units(device_->facts(), problem);
  memo_.compile(*device_, units, std::move(stop), {}, std::nullopt, kSpareCores);
}

/// Dispatches to a tuning's winner from now on, and stores it.
const LoadedPlan& Session::Impl::adopt(const Tuning& tuning, bool is_tuned) {
  const Winner winner = make_winner(tuning.problem, tuning.trials[*tuning.winner], is_tuned);
  const LoadedPlan& plan = install(tuning.problem, winner, load(tuning.problem, winner, *tuning.winner_binary), false);
  // In this order: a publication takes notes that wait to the file with it.
  if (!is_tuned) cache_.note_miss(tuning.problem, winner.sizes, false);
  cache_.publish(tuning.problem, winner, *tuning.winner_binary, is_tuned ? &tuning : nullptr);
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
  const LoadedPlan& installed = plans_.insert(ProblemKey(problem), std::move(plan));
  if (winner.tuned && problem.launch_context == LaunchContext::stream) {
    // Better than what the graph has as long as nothing was tuned for it.
    const Problem in_graph = in_context(problem, LaunchContext::graph);
    const LoadedPlan* known = plans_.find(ProblemKey(in_graph));
    const bool is_makeshift =
        known && (!known->winner.tuned || known->winner.launch_context == LaunchContext::stream);
    if (is_makeshift) lend_stream_winner(in_graph);
  }
  return installed;
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
Tuning Session::compare(const Problem& problem, const TuningOptions& options) {
  return impl_->compare(problem, options);
}
void Session::adopt(const Tuning& tuning, std::span<const Problem> served) { impl_->adopt(tuning, served); }
void Session::compile_ahead(const Problem& problem, std::stop_token stop) {
  impl_->compile_ahead(problem, std::move(stop));
}

const std::shared_ptr<Device>& Session::device() const { return impl_->device(); }
const SessionOptions& Session::options() const { return impl_->options(); }
SessionCounters Session::counters() const { return impl_->counters(); }

}  // namespace hone
