// PlanTable: the plans that a session has in memory, read on every call without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hone/candidate.h>
#include <hone/error.h>
#include <hone/sdk/loans.h>

#include "runtime/dispatch/append_only_map.h"
#include "runtime/dispatch/problem_key.h"
#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/race.h"

namespace hone {

/// A winner that is loaded and ready to launch.
struct LoadedPlan {
  Winner winner;
  LoadedCandidate loaded;
  std::size_t buffers = 0;  ///< that a call takes
  bool needs_workspace = false;
  bool is_provisional = false;    ///< to be replaced by a tuned winner, by a call outside of capture
  Clock::time_point retry_at{};   ///< a provisional plan is not replaced before
  Clock::duration retry_pause{};  ///< how long a provisional plan's last pause was; 0: there was none

  /// True when it is time to look for something better (PlanTable::is_due()).
  bool is_due() const { return is_provisional && Clock::now() >= retry_at; }
};

/// A plan and where it came from.
struct Resolved {
  const LoadedPlan* plan = nullptr;
  ChoiceSource source = ChoiceSource::memory;
};

/// Maps problem classes to loaded plans for the life of a session. Lookups take no lock, make no system call and do not
/// allocate; any number of threads may look up while one installs. Calls that change the table must be serialised by
/// the caller. Plans never move and are never freed before the table: references stay valid.
class PlanTable {
 public:
  /// `replaces_untuned`: whether a miss is tuned, so that what serves it meanwhile is provisional.
  explicit PlanTable(bool replaces_untuned) : replaces_untuned_(replaces_untuned) {}

  /// The newest plan of the class of `problem`; nullptr: none.
  const LoadedPlan* find(const Problem& problem) const { return plans_.find(ProblemKey(problem)); }

  /// True if a plan should be replaced; never once the table is pinned.
  bool is_due(const LoadedPlan& plan) const { return plan.is_due() && !is_pinned(); }

  /// Lets each class keep its plan: what would replace one does nothing, and returns it.
  void pin() { is_pinned_ = true; }
  bool is_pinned() const { return is_pinned_; }

  /// Dispatches the class of `problem` to `winner` from now on. A tuned winner of a stream also replaces what its graph
  /// problem uses, as long as nothing was tuned for the graph. `capturing`: the call that needs it is being captured.
  const LoadedPlan& install(const Problem& problem, const Winner& winner, std::shared_ptr<const Module> module,
                            bool capturing);

  /// Dispatches the class of `problem` to `winner` in place of one that cannot be launched here, also where it is due.
  const LoadedPlan& replace_refused(const Problem& problem, const Winner& winner,
                                    std::shared_ptr<const Module> module) {
    return insert(problem, plan_of(problem, winner, std::move(module)));
  }

  /// Serves a graph problem with the plan of the same problem in a stream.
  const LoadedPlan& lend_to_graph(const Problem& graph_problem, const LoadedPlan& stream_plan);

  /// Serves `problem` with `plan`, provisionally: it is due again after `first_pause` and, if it is postponed again,
  /// after twice as long each time, up to an hour.
  const LoadedPlan& postpone(const Problem& problem, LoadedPlan plan, Clock::duration first_pause);

  /// The winners that were tuned for `problems`, or what differs from one of them in alignment, launch context and
  /// extents alone: those measured within `box`, and those that serve the extents. `problems` must differ from each
  /// other in more. Takes as long as there are classes of such problems, however many others have a plan.
  std::vector<Lender> tuned_winners(std::span<const Problem> problems, const std::array<SizeRange, 3>& box) const;

  /// The problem that first got each of the classes with a plan.
  const std::vector<Problem>& problems() const { return problems_; }

  /// An error that every further call of the class of `problem` throws: no policy of it compiles.
  void set_failure(const Problem& problem, const Error& error) { failures_.insert(ProblemKey(problem), error); }
  const Error* failure(const Problem& problem) const { return failures_.find(ProblemKey(problem)); }

 private:
  struct HashOfKey {
    std::size_t operator()(const ProblemKey& key) const { return key.bits(); }
  };

  static LoadedPlan plan_of(const Problem& problem, const Winner& winner, std::shared_ptr<const Module> module);
  const LoadedPlan& insert(const Problem& problem, LoadedPlan plan);

  const bool replaces_untuned_;
  std::atomic<bool> is_pinned_ = false;
  std::vector<Problem> problems_;
  /// Indices into problems_ of those that differ in alignment, launch context and extents alone.
  std::unordered_map<ProblemKey, std::vector<std::size_t>, HashOfKey> relatives_;
  AppendOnlyMap<ProblemKey, LoadedPlan> plans_;
  AppendOnlyMap<ProblemKey, Error> failures_;
};

}  // namespace hone
