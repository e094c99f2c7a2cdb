#include "runtime/dispatch/session_core.h"

#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "cache/step.h"
#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

/// The steps of the cache, which knows no profilers, become ranges.
constexpr cache::StepObserver kRanges{
    .begin = [](const char* step) { trace::listener.load(std::memory_order_relaxed)->push(step); },
    .end = []() noexcept { trace::listener.load(std::memory_order_relaxed)->pop(); }};

}  // namespace

SessionCore::SessionCore(std::shared_ptr<Device> device, SessionOptions options)
    : device_(std::move(device)),
      options_(std::move(options)),
      stats_(options_.stats_folder, *device_),
      cache_(*device_, options_, [this](const cache::LayerFailure& failure) { count_cache_failure(failure); }) {
  start_tracing();
  if (trace::listener.load() != nullptr) cache::step_observer.store(&kRanges);
  write_stats();
}

void SessionCore::count(std::uint64_t SessionCounters::*counter) {
  {
    const std::scoped_lock lock(mutex_);
    ++(counters_.*counter);
  }
  write_stats();
}

void SessionCore::write_stats() {
  if (!stats_.is_wanted()) return;
  const std::string fault = stats_.write(counters());
  if (!fault.empty() && !has_reported_stats_.exchange(true) && options_.report_cache_failure)
    options_.report_cache_failure(fault);
}

void SessionCore::count_cache_failure(const cache::LayerFailure& failure) {
  {
    const std::scoped_lock lock(mutex_);
    ++counters_.cache_failures;
    counters_.last_cache_failure = failure.message;
    if (failure.is_winner_lost) ++counters_.not_stored;
  }
  if (failure.is_first && options_.report_cache_failure) options_.report_cache_failure(failure.message);
}

void SessionCore::note_refused_grid(const Problem& problem, const Policy& policy, std::string_view why) {
  count(&SessionCounters::refused_grids);
  if (has_refused_grids_.exchange(true) || !options_.report_refused_grid) return;
  options_.report_refused_grid(
      fmt::format("{} cannot run for {} on {} ({}), so another policy serves it, which may be slower: {}; give the "
                  "process all SMs of the device (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, green contexts)",
                  problem.family->space().to_string(policy), to_string(problem), device_->name(), facts().name, why));
}

bool SessionCore::is_refused(const ProblemClass& problem_class, const Policy& policy) const {
  return has_refused_grids_ && problem_class.family().shape(problem_class.typical(), policy).cooperative;
}

SessionCounters SessionCore::counters() const {
  const std::scoped_lock lock(mutex_);
  SessionCounters counters = counters_;
  counters.compiles = memo_.compiled();
  counters.cache_rejects += cache_.rejects();
  counters.caches_left_out = cache_.left_out();
  return counters;
}

}  // namespace hone
