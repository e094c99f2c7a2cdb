#include <hone/session.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/choose/choose.h"
#include "runtime/dispatch/session_impl.h"

namespace hone {
namespace {

Winner make_winner(const Problem& problem, const Trial& trial, bool tuned) {
  Winner winner{.candidate = trial.candidate,
                .resources = trial.resources,
                .resident_blocks = trial.resident_blocks,
                .tuned = tuned,
                .median_us = tuned ? trial.median_us : 0,
                .spread_us = tuned ? trial.spread_us : 0,
                .launch_context = problem.launch_context,
                .tuned_extents = problem.extents};
  for (std::size_t i = 0; i < winner.sizes.size(); ++i) {
    const bool is_unused = i > 0 && problem.extents[i] == 1;
    winner.sizes[i] = is_unused ? SizeRange{1, 1} : size_range(size_class(problem.extents[i]));
  }
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
      cache_(*device_, options_.cache_path) {}

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
  if (const LoadedPlan* plan = load_cached(problem, untuned_will_do, capturing)) return {plan, ChoiceSource::cache};
  if (may_tune)
    if (const LoadedPlan* plan = tune_miss(problem)) return {plan, ChoiceSource::tuned};
  if (may_lend) {
    if (const Resolved lent = lend_stream_winner(problem); lent.plan) return lent;
    if (const LoadedPlan* plan = load_cached(problem, true, capturing)) return {plan, ChoiceSource::cache};
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
  std::string failure;
  cache_.publish(problem, winner, *choice.binary, nullptr, failure);
  count_cache_failure(failure);
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.heuristics;
  return {&plan, ChoiceSource::heuristic};
}

/// Serves a graph problem with what was tuned for the stream, where nothing was tuned for the graph.
Resolved Session::Impl::lend_stream_winner(const Problem& graph_problem) {
  const Problem stream_problem = in_context(graph_problem, LaunchContext::stream);
  Resolved lender{.plan = plans_.find(ProblemKey(stream_problem))};
  if (!lender.plan || !lender.plan->winner.tuned)
    lender = {load_cached(stream_problem, false, false), ChoiceSource::cache};
  if (!lender.plan) return {};
  LoadedPlan lent = *lender.plan;
  lent.is_provisional = options_.on_miss == MissPolicy::tune;
  return {&plans_.insert(ProblemKey(graph_problem), std::move(lent)), lender.source};
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
  std::string failure;
  const std::optional<CachedWinner> cached = cache_.find(problem, failure);
  count_cache_failure(failure);
  if (!cached || (!cached->winner.tuned && !untuned_will_do)) return nullptr;
  if (!may_launch(problem, cached->winner.candidate)) return nullptr;
  try {
    const LoadedPlan& plan = install(problem, cached->winner, load(problem, cached->winner, cached->binary), capturing);
    const std::scoped_lock lock(counters_mutex_);
    ++counters_.cache_hits;
    return &plan;
  } catch (const Error& error) {
    count_cache_failure(error.what());
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
    Problem neighbour = problem;
    neighbour.extents[0] = size_range(size_class(problem.extents[0]) + distance).first;
    add(neighbour);
  }
  const bool is_stream = problem.launch_context == LaunchContext::stream;
  add(in_context(problem, is_stream ? LaunchContext::graph : LaunchContext::stream));
  return candidates;
}

/// nullptr when there is too little memory to measure in: the heuristic needs none.
const LoadedPlan* Session::Impl::tune_miss(const Problem& problem) {
  const TuningOptions options{.budget = options_.tune_budget,
                              .workspace_bytes = WorkspacePool::kWorkspaceBytes,
                              .start_from = neighbours_of(problem)};
  try {
    const Tuning tuning = choose_by_measuring(device_, problem, options, memo_);
    if (!tuning.winner)
      throw Error(ErrorCode::device_failed, fmt::format("no candidate for {} works on {}: {}", to_string(problem),
                                                        device_->name(), first_failure(tuning)));
    return &adopt(tuning);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::out_of_memory) return nullptr;
    throw;
  }
}

Tuning Session::Impl::tune(const Problem& problem, TuningOptions options) {
  options.workspace_bytes = std::min(options.workspace_bytes, WorkspacePool::kWorkspaceBytes);
  const std::scoped_lock lock(miss_mutex_);
  for (const Candidate& candidate : neighbours_of(problem)) options.start_from.push_back(candidate);
  Tuning tuning = choose_by_measuring(device_, problem, options, memo_);
  if (tuning.winner) adopt(tuning);
  return tuning;
}

/// Dispatches to a tuning's winner from now on, and stores it.
const LoadedPlan& Session::Impl::adopt(const Tuning& tuning) {
  const Winner winner = make_winner(tuning.problem, tuning.trials[*tuning.winner], true);
  const LoadedPlan& plan = install(tuning.problem, winner, load(tuning.problem, winner, *tuning.winner_binary), false);
  std::string failure;
  cache_.publish(tuning.problem, winner, *tuning.winner_binary, &tuning, failure);
  count_cache_failure(failure);
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
  return counters;
}

void Session::Impl::count_cache_failure(const std::string& failure) {
  if (failure.empty()) return;
  const std::scoped_lock lock(counters_mutex_);
  ++counters_.cache_failures;
  counters_.last_cache_failure = failure;
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
