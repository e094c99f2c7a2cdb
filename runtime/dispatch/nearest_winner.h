// NearestWinner: the winner that an untuned problem borrows from another class.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hone/candidate.h>
#include <hone/problem.h>
#include <hone/sdk/loans.h>

#include "runtime/dispatch/cache_lookup.h"
#include "runtime/dispatch/plan_table.h"
#include "runtime/dispatch/session_core.h"

namespace hone {

/// Serves an untuned problem with the tuned winner of the class that differs least from its own (hone/sdk/loans.h).
/// Measures nothing. Calls must be serialised by the caller. All references must outlive it.
class NearestWinner {
 public:
  NearestWinner(SessionCore& core, PlanTable& plans, CacheLookup& lookup)
      : core_(core), plans_(plans), lookup_(lookup) {}

  /// The candidates that a tuning of `problem` measures first: the winners of the nearest shapes, and those of this
  /// shape in the other launch context or with another alignment.
  std::vector<Candidate> starts_for(const Problem& problem);

  /// Serves `problem` with the first lender whose winner compiles and runs, which is then stored as untuned, else with
  /// `untuned`, the choice of an earlier session. No plan when there is neither. Under MissPolicy::error nothing serves
  /// but the stream's tuned winner, which is lent to a graph that is being captured.
  Resolved serve(const Problem& problem, const std::optional<CachedWinner>& untuned, bool capturing);

 private:
  std::vector<Lender> stored_lenders(std::span<const Problem> problems, cache::Devices devices);
  std::vector<Lender> known_lenders(std::span<const Problem> problems);
  std::vector<Lender> lenders_for(const Problem& problem);
  Resolved lend_stream_winner(const Problem& graph_problem, bool capturing);
  const LoadedPlan* borrow(const Problem& problem, const Lender& lender, bool capturing);
  std::shared_ptr<const Binary> code_for(const Lender& lender, const Unit& unit);

  SessionCore& core_;
  PlanTable& plans_;
  CacheLookup& lookup_;
};

}  // namespace hone
