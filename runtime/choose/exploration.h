// Exploration: compiles and measures candidates in the order of the occupancy model until the rest cannot win.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include <hone/tuning.h>

#include "runtime/choose/candidate_measurer.h"
#include "runtime/choose/candidate_queue.h"
#include "runtime/choose/policy_loader.h"
#include "runtime/choose/search_order.h"
#include "runtime/choose/stopping_rule.h"

namespace hone {

/// The first half of a tuning. Policies are taken in waves, in the order of SearchOrder. A wave is compiled on all
/// cores, on a GPU while the one before it is measured, unless that would disturb it; what has to wait for too long
/// comes with a later wave, and the rest of this one is measured meanwhile. Of its candidates, the model's choice and
/// the best prediction of each policy that comes first are measured, then the others as long as the surrogate expects
/// them to improve on the leader. The search ends when it expects that of none that is left, when the leader is as fast
/// as memory and enqueueing allow, or with the budget. In the first case the nearest relatives of the leader are
/// measured as well, and of the fastest with each value of a named parameter that is nearly as fast, as long as there
/// is a new one of these: what has been measured tells the surrogate how parameters do on the whole, and less of how
/// they do together. If compiling the first wave took the budget, those of its candidates that are such relatives are.
/// TuningOptions::measure_all and exhaustive measure all, TuningOptions::only what it lists.
///
/// Its parts: SearchOrder says which policies are next, PolicyLoader compiles and loads them, CandidateQueue says which
/// of their candidates are next, CandidateMeasurer measures these, and StoppingRule says when it is enough.
class Exploration {
 public:
  /// All references must outlive the exploration.
  Exploration(Device& device, const Problem& problem, const TuningOptions& options, BinaryMemo& memo, Race& race,
              Clock::time_point compile_deadline, Clock::time_point deadline);

  /// Fills in `contenders` and `rejected`, which together hold a record of every policy.
  void run();

  /// Its contenders have been measured, or failed, or were not reached; they stay in place.
  std::deque<Contender>& contenders() { return measurer_.contenders(); }
  std::vector<Trial>& rejected() { return rejected_; }

  const CompiledCode& code_of(const Candidate& candidate) const { return loader_.code_of(candidate); }
  SearchEnd end() const { return end_; }
  bool has_compiled() const { return loader_.has_loaded(); }
  bool budget_spent() const { return budget_spent_; }
  double compile_ms() const { return loader_.compile_ms(); }  ///< that measuring had to wait for

 private:
  using Wave = SearchOrder::Wave;

  std::vector<CompileOutcome> compile(const Wave& wave, Clock::time_point deadline);
  std::size_t add(const Wave& wave, const std::vector<CompileOutcome>& outcomes);
  void add(std::size_t place, CompileOutcome outcome);
  void measure(Clock::time_point deadline);
  void measure_group(std::vector<QueuedCandidate> group, Clock::time_point deadline);
  void refine(Clock::time_point deadline);
  bool require_relatives(const Candidate& leader);
  bool is_done(const Wave& next);
  void reject_rest();
  SearchState state() const;
  void report(TuningPhase phase, int done, int total) const;

  Device& device_;
  const Problem& problem_;
  const TuningOptions& options_;
  const Clock::time_point compile_deadline_;
  const Clock::time_point deadline_;

  const StoppingRule rule_;
  SearchOrder order_;
  PolicyLoader loader_;
  CandidateQueue queue_;
  CandidateMeasurer measurer_;

  std::vector<Trial> rejected_;
  SearchEnd end_ = SearchEnd::everything_searched;
  bool budget_spent_ = false;
  int done_ = 0;    ///< candidates that were measured or passed over
  int listed_ = 0;  ///< candidates so far
};

}  // namespace hone
