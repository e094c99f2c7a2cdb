#include "runtime/dispatch/cache_lookup.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/choose/choice_check.h"
#include "runtime/choose/compiled.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/trace/trace_range.h"

namespace hone {

CachedPlan CacheLookup::find(const Problem& problem, bool capturing) {
  const TraceRange traced([&] { return "lookup " + to_string(problem); });
  bool is_misfit = false;
  std::optional<CachedWinner> cached = core_.cache().find(problem, &is_misfit);
  if (!cached) return {.is_misfit = is_misfit};
  if (!cached->winner.tuned) return {.untuned = std::move(cached)};
  const LoadedPlan* plan = load(problem, *cached, capturing);
  return {.plan = plan,
          .source = cached->is_unverified ? ChoiceSource::shipped : ChoiceSource::cache,
          .is_misfit = plan == nullptr};
}

const LoadedPlan* CacheLookup::load(const Problem& problem, const CachedWinner& cached, bool capturing) {
  if (cached.is_unverified) return load_shipped(problem, cached, capturing);
  const std::optional<Loaded> loaded = load_checked(problem, cached);
  if (!loaded) {
    core_.count(&SessionCounters::cache_rejects);
    return nullptr;
  }
  const LoadedPlan& plan = plans_.install(problem, loaded->winner, loaded->module, capturing);
  const bool is_stale = cached.stale_driver || loaded->is_compiled_anew;
  if (!cached.winner.tuned || is_stale)
    core_.cache().note_miss(problem, cached.winner.sizes, cached.winner.tuned);
  core_.count(&SessionCounters::cache_hits);
  if (cached.stale_driver) core_.count(&SessionCounters::stale_hits);
  return &plan;
}

/// Compiles and verifies a winner that comes without code, and stores it for its class alone: it was verified for no
/// other. While a stream is captured nothing can be verified: then it serves as a loan would, and is not stored.
const LoadedPlan* CacheLookup::load_shipped(const Problem& problem, const CachedWinner& cached, bool capturing) {
  if (std::find(dropped_.begin(), dropped_.end(), ProblemKey(problem)) != dropped_.end()) return nullptr;
  std::optional<Loaded> loaded = load_checked(problem, cached);
  if (!loaded) {
    const Reason reason = launch_fault(core_.facts(), problem, cached.winner.candidate);
    drop(problem, cached, reason.empty() ? "it does not compile or cannot be launched here" : reason.text());
    return nullptr;
  }
  if (!capturing) {
    if (const std::string fault = fault_of(problem, *loaded); !fault.empty()) {
      drop(problem, cached, fault);
      return nullptr;
    }
  }
  loaded->winner.sizes = size_ranges(problem.extents);
  const LoadedPlan& plan = plans_.install(problem, loaded->winner, loaded->module, capturing);
  if (!capturing) core_.cache().publish(problem, loaded->winner, *loaded->binary, nullptr);
  core_.count(&SessionCounters::shipped);
  return &plan;
}

/// A failure of the check is a fault of the winner, too: a lookup that fails would fail the call.
std::string CacheLookup::fault_of(const Problem& problem, const Loaded& loaded) {
  try {
    return fault_of_choice(core_.device(), problem, loaded.winner.candidate, loaded.module, core_.memo());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    return error.what();
  }
}

void CacheLookup::drop(const Problem& problem, const CachedWinner& cached, std::string_view why) {
  dropped_.emplace_back(problem);
  core_.count(&SessionCounters::cache_rejects);
  core_.count_cache_failure(
      {.message = fmt::format("the shipped winner of {} ({}) is not used: {}: {}", to_string(problem),
                              cached.winner.shipped,
                              problem.family->space().to_string(cached.winner.candidate.policy), why),
       .is_first = true});
}

Resolved CacheLookup::settled(const Problem& problem, const CachedPlan& cached) {
  if (cached.plan) return {cached.plan, cached.source};
  if (!cached.untuned || !cached.untuned->is_attempted) return {};
  return {load(problem, *cached.untuned, false), ChoiceSource::cache};
}

/// The code of a cached winner, compiled where it was not stored; nullopt when row and code do not fit each other. Code
/// of another compiler that does not load here, for instance because the driver is too old for it, is compiled anew.
/// The policy is still a good choice then, but what was measured is other code: registers may differ.
std::optional<CacheLookup::Loaded> CacheLookup::load_checked(const Problem& problem, const CachedWinner& cached) {
  const Winner& winner = cached.winner;
  if (!may_launch(core_.facts(), problem, winner.candidate)) return std::nullopt;
  if (core_.is_refused(problem, winner.candidate.policy)) return std::nullopt;
  const Unit unit = unit_of(problem, winner.candidate.policy);
  if (cached.code && cached.code->unit_digest != unit_digest(unit)) return std::nullopt;  // another kernel by now
  if (cached.code) {
    const auto binary = std::make_shared<const Binary>(cached.code->binary);
    std::optional<Loaded> loaded = load_code(problem, winner, unit, binary);
    if (loaded && loaded->winner.resources == winner.resources) return loaded;
    if (loaded || !cached.other_compiler) return std::nullopt;
  }
  try {
    const auto binary = core_.memo().compile(*core_.device(), std::span(&unit, 1)).front().binary;
    std::optional<Loaded> loaded = binary ? load_code(problem, winner, unit, binary) : std::nullopt;
    if (!loaded) return std::nullopt;
    loaded->is_compiled_anew = cached.other_compiler && loaded->winner.resources != winner.resources;
    return cached.other_compiler || loaded->winner.resources == winner.resources ? loaded : std::nullopt;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    core_.count_cache_failure({.message = error.what()});
    return std::nullopt;
  }
}

/// The winner with the resources of its code; nullopt when the code cannot be run here.
std::optional<CacheLookup::Loaded> CacheLookup::load_code(const Problem& problem, const Winner& winner,
                                                          const Unit& unit,
                                                          const std::shared_ptr<const Binary>& binary) {
  if (binary->architecture != core_.facts().architecture) return std::nullopt;
  try {
    CompiledCode code = load_policy(*core_.device(), problem, winner.candidate.policy, unit, binary, &core_.memo());
    if (code.compiled.resident_blocks == 0) {
      if (problem.family->shape(problem, winner.candidate.policy).cooperative)
        core_.note_refused_grid(problem, winner.candidate.policy,
                                fmt::format("its {} blocks have to be resident at once, and there are {} SMs for them",
                                            winner.candidate.geometry.max_blocks, core_.device()->usable_sms()));
      return std::nullopt;
    }
    Loaded loaded{.winner = winner, .module = std::move(code.module), .binary = binary};
    loaded.winner.resources = code.compiled.resources;
    loaded.winner.resident_blocks = code.compiled.resident_blocks;
    return loaded;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    core_.count_cache_failure({.message = error.what()});
    return std::nullopt;
  }
}

}  // namespace hone
