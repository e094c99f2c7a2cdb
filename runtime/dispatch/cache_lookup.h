// CacheLookup: from a stored winner in a cache file to a loaded plan.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/problem.h>

#include "runtime/dispatch/cache_bridge.h"
#include "runtime/dispatch/plan_table.h"
#include "runtime/dispatch/problem_key.h"
#include "runtime/dispatch/session_core.h"

namespace hone {

/// The stored winner of a problem, as far as the cache files have one.
struct CachedPlan {
  const LoadedPlan* plan = nullptr;          ///< the plan of a tuned winner
  ChoiceSource source = ChoiceSource::cache;
  bool is_misfit = false;                    ///< there is a row, but row and code do not fit each other or this device
  std::optional<CachedWinner> untuned = {};  ///< an untuned winner, not loaded yet
};

/// Finds the stored winner of a problem, checks that its row and its code fit each other and the device, loads the code
/// and installs the plan. Winners without code are compiled. A file that cannot be used is a miss, never a failed call.
/// Calls must be serialised by the caller. All references must outlive the lookup.
class CacheLookup {
 public:
  CacheLookup(SessionCore& core, PlanTable& plans) : core_(core), plans_(plans) {}

  /// A tuned winner is loaded and installed; an untuned one is only found.
  CachedPlan find(const Problem& problem, bool capturing);

  /// Loads and installs `cached`; nullptr when row and code do not fit each other or this device. Notes that a tuning
  /// would help where the winner is untuned or was measured under another driver.
  const LoadedPlan* load(const Problem& problem, const CachedWinner& cached, bool capturing);

  /// The plan that makes a tuning of `problem` needless: a tuned winner, or the untuned one of a tuning that had no
  /// less time than this session gives. No plan otherwise.
  Resolved settled(const Problem& problem, const CachedPlan& cached);

 private:
  struct Loaded {
    Winner winner;
    std::shared_ptr<const Module> module;
    std::shared_ptr<const Binary> binary;
    bool is_compiled_anew = false;  ///< by another compiler, into other code than what was measured
  };

  const LoadedPlan* load_shipped(const Problem& problem, const CachedWinner& cached, bool capturing);
  std::string fault_of(const Problem& problem, const Loaded& loaded);
  void drop(const Problem& problem, const CachedWinner& cached, std::string_view why);
  std::optional<Loaded> load_checked(const Problem& problem, const CachedWinner& cached);
  std::optional<Loaded> load_code(const Problem& problem, const Winner& winner, const Unit& unit,
                                  const std::shared_ptr<const Binary>& binary);

  SessionCore& core_;
  PlanTable& plans_;
  std::vector<ProblemKey> dropped_;  ///< whose shipped winner did not verify
};

}  // namespace hone
