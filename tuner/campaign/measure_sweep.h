// SweepMeasurer: runs the candidates of a sweep where a SweepComparison wants to know what they take.
#pragma once

#include <vector>

#include <hone/session.h>

#include "tuner/campaign/messages.h"
#include "tuner/campaign/sweep_choice.h"
#include "tuner/campaign/tune_problem.h"

namespace hone::tuner {

/// All references must outlive it.
class SweepMeasurer {
 public:
  SweepMeasurer(Session& session, const ConsolidateRequest& request, const WorkHooks& hooks)
      : session_(session), request_(request), hooks_(hooks) {}

  /// Measures all winners at the tuned rows that may change, and then those that are fast beside them at the rows
  /// between: first at the center between two tuned ones. Once that has taken `most_ms`, the tuned rows that are left
  /// keep their winners, and the others count as not measured; so does a tuned row whose winner was not reached in its
  /// time. `winners` are those of the request's problems. Returns false if it was stopped.
  bool measure(std::vector<SweepRow>& rows, const std::vector<Candidate>& winners, double most_ms,
               SweepComparison& comparison);

  /// `first` is measured before the others, in whose time it is then known; nullptr: none is. Verifies a lone
  /// candidate.
  Tuning compare_at(const Problem& problem, const std::vector<Candidate>& compared, const Candidate* first = nullptr);

  double spent_ms() const { return spent_ms_; }

 private:
  void measure(std::vector<SweepRow>& rows, std::size_t index, const std::vector<Candidate>& compared,
               const Candidate* own, SweepComparison& comparison);

  Session& session_;
  const ConsolidateRequest& request_;
  const WorkHooks& hooks_;
  double spent_ms_ = 0;
  double most_ms_ = 0;
};

}  // namespace hone::tuner
