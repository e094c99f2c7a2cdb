#include "runtime/dispatch/cache_lookup.h"

#include <cstdint>
#include <span>
#include <utility>

#include <hone/error.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/trace/trace_range.h"

namespace hone {

CachedPlan CacheLookup::find(const Problem& problem, bool capturing) {
  const TraceRange traced([&] { return "lookup " + to_string(problem); });
  CacheBridge& cache = core_.cache();
  const std::uint64_t misfits = cache.misfits();
  std::optional<CachedWinner> cached = cache.find(problem);
  if (!cached) return {.is_misfit = cache.misfits() != misfits};
  if (!cached->winner.tuned) return {.untuned = std::move(cached)};
  const LoadedPlan* plan = load(problem, *cached, capturing);
  return {.plan = plan, .is_misfit = plan == nullptr};
}

const LoadedPlan* CacheLookup::load(const Problem& problem, const CachedWinner& cached, bool capturing) {
  const std::shared_ptr<const Module> module = load_checked(problem, cached);
  if (!module) {
    core_.count(&SessionCounters::cache_rejects);
    return nullptr;
  }
  const LoadedPlan& plan = plans_.install(problem, cached.winner, module, capturing);
  if (!cached.winner.tuned || cached.stale_driver)
    core_.cache().note_miss(problem, cached.winner.sizes, cached.winner.tuned);
  core_.count(&SessionCounters::cache_hits);
  if (cached.stale_driver) core_.count(&SessionCounters::stale_hits);
  return &plan;
}

Resolved CacheLookup::settled(const Problem& problem, const CachedPlan& cached) {
  if (cached.plan) return {cached.plan, ChoiceSource::cache};
  if (!cached.untuned || !cached.untuned->is_attempted) return {};
  return {load(problem, *cached.untuned, false), ChoiceSource::cache};
}

/// The code of a cached winner, compiled where it was not stored; nullptr when row and code do not fit each other.
std::shared_ptr<const Module> CacheLookup::load_checked(const Problem& problem, const CachedWinner& cached) {
  const Winner& winner = cached.winner;
  if (!may_launch(core_.facts(), problem, winner.candidate)) return nullptr;
  try {
    Device& device = *core_.device();
    const Unit unit = unit_of(problem, winner.candidate.policy);
    std::shared_ptr<const Binary> binary;
    if (cached.code) {
      if (cached.code->unit_digest != unit_digest(unit)) return nullptr;  // the family makes another kernel by now
      binary = std::make_shared<const Binary>(cached.code->binary);
    } else {
      binary = core_.memo().compile(device, std::span(&unit, 1)).front().binary;
    }
    if (!binary || binary->architecture != core_.facts().architecture) return nullptr;
    const CompiledCode code = load_policy(device, problem, winner.candidate.policy, unit, binary);
    const bool fits = code.compiled.resources == winner.resources && code.compiled.resident_blocks > 0;
    return fits ? code.module : nullptr;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    core_.count_cache_failure({.message = error.what()});
    return nullptr;
  }
}

}  // namespace hone
