#include <hone/session.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/tune_arguments.h>

#include "runtime/choose/choose.h"
#include "runtime/dispatch/buffer_checks.h"
#include "runtime/dispatch/session_impl.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/trace/trace_range.h"

namespace hone {

Session::Impl::Impl(std::shared_ptr<Device> device, SessionOptions options)
    : core_(std::move(device), std::move(options)),
      workspaces_(core_.device(), core_.options().capture_workspaces),
      plans_(core_.options().on_miss == MissPolicy::tune),
      lookup_(core_, plans_),
      nearest_(core_, plans_, lookup_),
      tuning_(core_, plans_, lookup_, nearest_) {}

Choice Session::Impl::launch(const Problem& asked, std::span<void* const> buffers, Stream stream) {
  Device& device = *core_.device();
  const StreamState state = device.stream_state(stream);
  const Problem problem = state.capturing ? in_context(asked, LaunchContext::graph) : asked;
  check_buffers(device, core_.options(), problem, buffers, stream);
  // The smallest class of sizes holds negative extents, too; a family says what is wrong with them.
  if (!problem.family ||
      std::any_of(problem.extents.begin(), problem.extents.end(), [](std::int64_t extent) { return extent < 0; }))
    require_accepted(problem);
  Resolved resolved{.plan = plans_.find(problem)};
  if (!resolved.plan || plans_.is_due(*resolved.plan)) resolved = resolve(problem, state.capturing);
  try {
    enqueue(*resolved.plan, problem, buffers, state, stream);
  } catch (const NotResident& refused) {
    resolved = replace_refused(problem, *resolved.plan, refused, state.capturing);
    enqueue(*resolved.plan, problem, buffers, state, stream);
  }
  return {.source = resolved.source, .winner = &resolved.plan->winner};
}

void Session::Impl::enqueue(const LoadedPlan& plan, const Problem& problem, std::span<void* const> buffers,
                            const StreamState& state, Stream stream) {
  check_count(problem, plan.buffers, buffers.size());
  const TraceRange traced([&] { return call_text(problem, plan.winner); });
  if (plan.needs_workspace) {
    const WorkspaceLease workspace = workspaces_.take(state);
    plan.loaded.enqueue(*core_.device(), problem, buffers, workspace.memory(), stream);
  } else {
    plan.loaded.enqueue(*core_.device(), problem, buffers, nullptr, stream);
  }
}

Resolved Session::Impl::replace_refused(const Problem& problem, const LoadedPlan& refused, const NotResident& why,
                                        bool capturing) {
  const std::scoped_lock lock(miss_mutex_);
  const Policy& policy = refused.winner.candidate.policy;
  // Another thread may have replaced it meanwhile.
  const LoadedPlan* const known = plans_.find(problem);
  if (known && !problem.family->shape(problem, known->winner.candidate.policy).cooperative) return {.plan = known};
  if (is_pinned())
    throw Error(why.code(), fmt::format("{}; the session is pinned and keeps {} for {}: call it before pin(), so that "
                                        "another policy serves it",
                                        why.what(), problem.family->space().to_string(policy), to_string(problem)));
  core_.note_refused_grid(problem, policy, why.what());
  if (core_.options().on_miss == MissPolicy::error) throw not_tuned(problem);
  try {
    return tuning_.choose_resident(problem, capturing);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    throw without_others(problem, why, error);
  }
}

Resolved Session::Impl::resolve(const Problem& problem, bool capturing) {
  require_accepted(problem);
  const LoadedPlan* known = plans_.find(problem);
  std::unique_lock lock(miss_mutex_, std::defer_lock);
  // A problem with a provisional plan does not wait while another problem is tuned.
  if (!known) lock.lock();
  else if (capturing || !plans_.is_due(*known) || !lock.try_lock()) return {.plan = known};
  known = plans_.find(problem);
  if (known && (capturing || !plans_.is_due(*known))) return {.plan = known};
  if (const Error* const failure = plans_.failure(problem)) throw *failure;
  const TraceRange traced([&] { return "miss " + to_string(problem); });
  try {
    return miss(problem, capturing);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::compile_failed) plans_.set_failure(problem, error);
    throw;
  }
}

Resolved Session::Impl::miss(const Problem& problem, bool capturing) {
  const MissPolicy on_miss = core_.options().on_miss;
  const CachedPlan cached = lookup_.find(problem, capturing);
  if (cached.plan) return {cached.plan, cached.source};
  if (on_miss == MissPolicy::tune && !capturing && !is_pinned()) {
    if (const Resolved found = lookup_.settled(problem, cached); found.plan) return found;
    const std::optional<Resolved> tuned = tuning_.tune_miss(problem, cached.is_misfit);
    if (!tuned) return postpone(problem);
    if (tuned->plan) return *tuned;
  }
  Resolved found = nearest_.serve(problem, cached.untuned, capturing);
  if (!found.plan && on_miss == MissPolicy::error && !is_empty_class(problem.extents)) throw not_tuned(problem);
  if (!found.plan) found = {&tuning_.choose_heuristic(problem, capturing), ChoiceSource::heuristic};
  if (on_miss == MissPolicy::heuristic) report_untuned(problem, found.source);
  return found;
}

/// Serves a problem that another process is tuning with a provisional plan, and looks for the winner later: first after
/// the time that a tuning may take, then more and more rarely.
Resolved Session::Impl::postpone(const Problem& problem) {
  Resolved provisional{.plan = plans_.find(problem)};
  if (!provisional.plan) {
    const CachedPlan cached = lookup_.find(problem, false);
    if (cached.plan) return {cached.plan, cached.source};
    provisional = nearest_.serve(problem, cached.untuned, false);
    if (!provisional.plan) provisional = tuning_.choose_heuristic_once(problem);
  }
  return {&plans_.postpone(problem, *provisional.plan, core_.options().tune_budget), provisional.source};
}

/// `is_noted`: the problem was noted as missed, if there is a file to note it in.
std::string Session::Impl::how_to_tune(const Problem& problem, bool is_noted) {
  const bool can_note = core_.cache().can_note();
  const std::string path = core_.options().cache_path.string(), arguments = tune_arguments(problem);
  if (arguments.empty()) return "tune it with Session::tune(), or in the call (HONE_ON_MISS=tune)";
  if (path.empty())
    return fmt::format("without a cache, it can be tuned in the call (HONE_ON_MISS=tune, --on-miss tune, "
                       "MissPolicy::tune); with one (HONE_CACHE, --cache), ahead: hone tune {} --device {}",
                       arguments, core_.device()->name());
  if (!can_note)
    return fmt::format("tune it into a cache file that can be used (HONE_CACHE, --cache): hone tune {} --device {}",
                       arguments, core_.device()->name());
  return fmt::format("tune it with: hone tune {} --device {} --cache {}", is_noted ? "--missed" : arguments,
                     core_.device()->name(), shell_quoted(path));
}

void Session::Impl::report_untuned(const Problem& problem, ChoiceSource source) {
  const SessionOptions& options = core_.options();
  if (!options.report_untuned || is_empty_class(problem.extents)) return;
  if (std::exchange(has_reported_untuned_, true)) return;
  options.report_untuned(fmt::format("no winner was tuned for {} on {} ({}), so {}; {}", to_string(problem),
                                     core_.device()->name(), core_.facts().name,
                                     source == ChoiceSource::nearest ? "the winner of the nearest class serves it"
                                                                     : "a prediction chose the kernel",
                                     how_to_tune(problem, true)));
}

Error Session::Impl::not_tuned(const Problem& problem) {
  const std::string path = core_.options().cache_path.string();
  return Error(
      ErrorCode::not_tuned,
      fmt::format("no winner serves {} on {} ({}), and the session's policy is to report that; looked in {}; {}",
                  to_string(problem), core_.device()->name(), core_.facts().name, path.empty() ? "memory only" : path,
                  how_to_tune(problem, false)));
}

void Session::Impl::pin() {
  const std::scoped_lock lock(miss_mutex_);
  plans_.pin();
}

void Session::Impl::require_unpinned(std::string_view function) const {
  if (is_pinned())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("Session::{}: the session is pinned and keeps its winners; call it before pin(), or tune in "
                    "another session",
                    function));
}

Tuning Session::Impl::tune(const Problem& problem, const TuningOptions& options) {
  require_accepted(problem);
  const std::scoped_lock lock(miss_mutex_);
  require_unpinned("tune");
  return tuning_.tune(problem, options);
}

Tuning Session::Impl::compare(const Problem& problem, const TuningOptions& options) {
  if (options.only.empty())
    throw Error(ErrorCode::invalid_argument, "TuningOptions::only names no candidate to compare");
  require_accepted(problem);
  const std::scoped_lock lock(miss_mutex_);
  return tuning_.compare(problem, options);
}

void Session::Impl::adopt(const Tuning& tuning, std::span<const Problem> served) {
  if (!tuning.winner) throw Error(ErrorCode::invalid_argument, "a tuning without a winner cannot be adopted");
  const std::scoped_lock lock(miss_mutex_);
  require_unpinned("adopt");
  tuning_.adopt(tuning, served);
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
std::optional<Tuning> Session::stored_tuning(const Problem& problem) const { return impl_->stored_tuning(problem); }
DeviceLimits Session::stored_limits() const { return impl_->stored_limits(); }
Tuning Session::compare(const Problem& problem, const TuningOptions& options) {
  return impl_->compare(problem, options);
}
void Session::adopt(const Tuning& tuning, std::span<const Problem> served) { impl_->adopt(tuning, served); }
void Session::pin() { impl_->pin(); }
bool Session::is_pinned() const { return impl_->is_pinned(); }
void Session::recycle_workspaces() { impl_->recycle_workspaces(); }
std::string Session::fingerprint() const { return impl_->fingerprint(); }
int Session::agree(Communicator& communicator, int from) { return impl_->agree(communicator, from); }

const std::shared_ptr<Device>& Session::device() const { return impl_->core().device(); }
const SessionOptions& Session::options() const { return impl_->core().options(); }
SessionCounters Session::counters() const { return impl_->core().counters(); }

}  // namespace hone
