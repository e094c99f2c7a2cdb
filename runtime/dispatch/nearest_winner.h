// NearestWinner: the winner that an untuned problem borrows from another shape or launch context.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <hone/candidate.h>
#include <hone/problem.h>

#include "runtime/dispatch/cache_lookup.h"
#include "runtime/dispatch/plan_table.h"
#include "runtime/dispatch/session_core.h"

namespace hone {

/// Finds winners that were tuned for near shapes of the same problem, or for the same shape in a stream rather than a
/// graph, and serves an untuned problem with one of them. Measures nothing. Calls must be serialised by the caller. All
/// references must outlive it.
class NearestWinner {
 public:
  NearestWinner(SessionCore& core, PlanTable& plans, CacheLookup& lookup)
      : core_(core), plans_(plans), lookup_(lookup) {}

  /// The candidates that a tuning of `problem` measures first: the winners of the nearest shapes, and those of this
  /// shape in the other launch context.
  std::vector<Candidate> starts_for(const Problem& problem);

  /// Serves `problem` with, in this order: the stream's winner, if it is a graph problem; the winner of the nearest
  /// shape, which is then stored as untuned; `untuned`, the choice of an earlier session. No plan when there is none of
  /// them. Under MissPolicy::error nothing is borrowed from another shape.
  Resolved serve(const Problem& problem, const std::optional<CachedWinner>& untuned, bool capturing);

 private:
  struct Neighbour {
    Winner winner;
    double octaves = 0;  ///< shape_distance() from the problem
  };

  std::vector<Neighbour> neighbours_of(const Problem& problem);
  std::vector<Winner> lenders_for(const Problem& problem);
  Resolved lend_stream_winner(const Problem& graph_problem);
  const LoadedPlan* borrow(const Problem& problem, const Winner& lender, bool capturing);
  std::shared_ptr<const Binary> code_for(const Problem& problem, const Winner& lender, const Unit& unit);

  SessionCore& core_;
  PlanTable& plans_;
  CacheLookup& lookup_;
};

}  // namespace hone
