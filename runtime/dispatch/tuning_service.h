// TuningService: makes new winners, by measuring or by the model, once among all processes that ask.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hone/tuning.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/cache_lookup.h"
#include "runtime/dispatch/nearest_winner.h"
#include "runtime/dispatch/plan_table.h"
#include "runtime/dispatch/problem_key.h"
#include "runtime/dispatch/session_core.h"

namespace hone {

/// Tunes problems, stores the winners, dispatches to them, and notes what a later tuning would help. Processes that
/// share a cache file and miss the same problem at once agree there on the one that works; the others wait for its
/// winner. Calls must be serialised by the caller: tunings would disturb each other's measurements. All references must
/// outlive the service.
class TuningService {
 public:
  TuningService(SessionCore& core, PlanTable& plans, CacheLookup& lookup, NearestWinner& nearest)
      : core_(core), plans_(plans), lookup_(lookup), nearest_(nearest) {}

  /// Tunes a problem that a call missed, unless another process is tuning it: then waits for its winner. nullopt when
  /// that takes longer than a tuning may; at once where a provisional plan serves the problem, which has waited. No
  /// plan where there is too little memory to measure in. `has_misfit`: the winner that the cache has cannot be used
  /// here. Throws compile_failed or device_failed when no candidate works.
  std::optional<Resolved> tune_miss(const Problem& problem, bool has_misfit);

  /// The occupancy model's first choice, stored as untuned. That of a kernel or reduction of the program is verified on
  /// a small problem first, except while the caller captures a stream. Throws as choose_by_model() and
  /// fault_of_choice().
  const LoadedPlan& choose_heuristic(const Problem& problem, bool capturing);

  /// Replaces a winner that the device has refused, since its blocks have to be resident at once, by the best other
  /// candidate of the stored tuning, or else the model's first choice among the other policies. It is not stored:
  /// the device may be shared for as long as this process runs. Throws as choose_heuristic().
  Resolved choose_resident(const Problem& problem, bool capturing);

  /// As choose_heuristic(); where several processes ask at once, one compiles and the others wait, for ten seconds at
  /// most.
  Resolved choose_heuristic_once(const Problem& problem);

  /// As Session::tune().
  Tuning tune(const Problem& problem, TuningOptions options);

  /// As Session::compare(). TuningOptions::only names a candidate at least.
  Tuning compare(const Problem& problem, TuningOptions options);

  /// As Session::adopt(). The tuning has a winner.
  void adopt(const Tuning& tuning, std::span<const Problem> served);

  /// Dispatches `problem` to a candidate that was chosen elsewhere, without measuring or storing it. Throws
  /// invalid_argument if it cannot be launched here.
  void take_over(const Problem& problem, const Candidate& candidate);

 private:
  /// A winner that serves one problem of adopt(), checked and loaded.
  struct Adopted {
    Winner winner;
    std::shared_ptr<const Module> module;
    std::shared_ptr<const Binary> binary;
  };

  /// Measures the limits of device and machine, or takes those that the cache file has.
  enum class Limits { measured, stored };
  void settle_limits(Limits wanted);

  const LoadedPlan* next_measured(const Problem& problem, bool capturing);
  const LoadedPlan* tune_claimed(const Problem& problem, bool is_claimed);
  Tuning measure(const Problem& problem, TuningOptions options);
  void compile_ahead(const std::vector<Problem>& next);
  std::vector<Trial> nearby(const Problem& problem) const;
  ChoiceCheck check_of(const Problem& problem, bool capturing);
  ModelChoice first_choice(const Problem& problem, bool capturing);
  void remember(const Tuning& tuning);
  const LoadedPlan& install(const Tuning& tuning);
  Adopted checked_for(const Problem& problem, const Tuning& tuning);
  CompiledCode load(const Problem& problem, const Candidate& candidate, const std::string& whose);

  SessionCore& core_;
  PlanTable& plans_;
  CacheLookup& lookup_;
  NearestWinner& nearest_;
  Problem last_tuned_;
  std::vector<Trial> last_measured_;  ///< the trials of last_tuned_, best first
  std::vector<ProblemKey> next_;      ///< the problems that are compiled ahead
  BinaryMemo::Ahead ahead_;
  bool has_limits_ = false;
};

}  // namespace hone
