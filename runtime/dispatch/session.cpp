#include <hone/session.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/choose/choose.h"
#include "runtime/dispatch/session_impl.h"

namespace hone {

Session::Impl::Impl(std::shared_ptr<Device> device, SessionOptions options)
    : device_(std::move(device)),
      options_(std::move(options)),
      workspaces_(device_, options_.capture_workspaces),
      cache_(*device_, options_, [this](const cache::LayerFailure& failure) { count_cache_failure(failure); }) {}

Choice Session::Impl::launch(const Problem& asked, std::span<void* const> buffers, Stream stream) {
  const StreamState state = device_->stream_state(stream);
  const Problem problem = state.capturing ? in_context(asked, LaunchContext::graph) : asked;
  check_buffers(problem, buffers, stream);
  // The smallest class of sizes holds them too; a family says what is wrong with them.
  if (std::any_of(problem.extents.begin(), problem.extents.end(), [](std::int64_t extent) { return extent < 0; }))
    require_accepted(problem);
  Resolved resolved{.plan = plans_.find(ProblemKey(problem))};
  if (!resolved.plan || resolved.plan->is_due())
    resolved = resolve(problem, state.capturing);
  const LoadedPlan& plan = *resolved.plan;
  if (plan.needs_workspace) {
    const WorkspaceLease workspace = workspaces_.take(state);
    plan.loaded.enqueue(*device_, problem, buffers, workspace.memory(), stream);
  } else {
    plan.loaded.enqueue(*device_, problem, buffers, nullptr, stream);
  }
  return {.source = resolved.source, .winner = &plan.winner};
}

Resolved Session::Impl::resolve(const Problem& problem, bool capturing) {
  require_accepted(problem);
  const LoadedPlan* known = plans_.find(ProblemKey(problem));
  std::unique_lock lock(miss_mutex_, std::defer_lock);
  // What has a makeshift does not wait while another problem is tuned.
  if (!known) lock.lock();
  else if (capturing || !known->is_due() || !lock.try_lock()) return {.plan = known};
  known = plans_.find(ProblemKey(problem));
  if (known && (capturing || !known->is_due())) return {.plan = known};
  if (const Error* const failure = uncompilable_.find(ProblemKey(problem))) throw *failure;
  try {
    return miss(problem, capturing);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::compile_failed) uncompilable_.insert(ProblemKey(problem), error);
    throw;
  }
}

const LoadedPlan& Session::Impl::install(const Problem& problem, const Winner& winner,
                                         std::shared_ptr<const Module> module, bool capturing) {
  LoadedPlan plan{.winner = winner,
                  .loaded = {winner.candidate, std::move(module)},
                  .needs_workspace = problem.family->workspace_bytes(problem, winner.candidate) > 0,
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

void Session::Impl::check_buffers(const Problem& problem, std::span<void* const> buffers, Stream stream) const {
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
    const std::size_t alignment = spec.alignment > 0 ? spec.alignment
                                  : spec.is_input    ? problem.alignment
                                                     : info(spec.dtype).size_bytes;
    if (alignment_of(buffers[i]) < alignment)
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: '{}' at {} is not aligned to {} bytes",
                                                           to_string(problem), spec.name, buffers[i], alignment));
    if (device_->memory_kind(buffers[i]) != MemoryKind::device)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: '{}' at {} is host memory; copy it to {} first", to_string(problem), spec.name,
                              buffers[i], device_->name()));
  }
  check_contents(problem, specs, buffers, stream);
}

void Session::Impl::check_contents(const Problem& problem, const std::vector<BufferSpec>& specs,
                                   std::span<void* const> buffers, Stream stream) const {
  if (device_->stream_state(stream).capturing) return;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!specs[i].is_validated) continue;
    std::vector<std::byte> contents(specs[i].size_bytes());
    device_->copy_to_host(contents.data(), buffers[i], contents.size(), stream);
    device_->synchronize(stream);
    const std::string refusal = problem.family->refuse_contents(problem, static_cast<int>(i), contents);
    if (!refusal.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", to_string(problem), refusal));
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

namespace {

std::shared_ptr<Device> require_device(std::shared_ptr<Device> device) {
  if (!device) throw Error(ErrorCode::invalid_argument, "a Session was given no device; open one with Device::open()");
  return device;
}

}  // namespace

Session::Session(std::shared_ptr<Device> device, SessionOptions options)
    : impl_(std::make_unique<Impl>(require_device(std::move(device)), std::move(options))) {}
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
void Session::recycle_workspaces() { impl_->recycle_workspaces(); }

const std::shared_ptr<Device>& Session::device() const { return impl_->device(); }
const SessionOptions& Session::options() const { return impl_->options(); }
SessionCounters Session::counters() const { return impl_->counters(); }

}  // namespace hone
