// SearchOrder: which policies of a problem a search compiles and measures next.
#pragma once

#include <cstddef>
#include <vector>

#include <hone/tuning.h>

#include "runtime/search/candidates.h"
#include "runtime/search/surrogate.h"

namespace hone {

/// Pruning is off where every valid policy is to be measured, and where candidates are asked for by name.
Pruning pruning_of(const TuningOptions& options);

/// First come the model's choice and the winners of neighbouring problems (TuningOptions::start_from). Then, where
/// nothing was measured on a neighbouring problem (TuningOptions::nearby), the highest-ranked policy of each value of
/// each parameter, so that all that a parameter can do is seen once (of an ordinal one, values at least an octave
/// apart); then whatever the surrogate expects the most of.
class SearchOrder {
 public:
  using Wave = std::vector<std::size_t>;  ///< of policies, by their place in the ranking

  /// All references must outlive it, but for `limits`: all zero where nothing was measured.
  SearchOrder(const DeviceFacts& facts, const Problem& problem, const TuningOptions& options,
              const DeviceLimits& limits = {});

  /// The policies that may be compiled, most promising first.
  const std::vector<RankedPolicy>& ranking() const { return ranking_; }
  std::vector<Trial>& rejected() { return rejected_; }
  std::size_t valid_policies() const { return valid_policies_; }  ///< those of the ranking, and those that were pruned

  /// The next policies, `count` of them or all that are left; not to be asked for again. `leader_us`: infinite while
  /// nothing was measured.
  Wave next(std::size_t count, double leader_us);

  /// Policies that were given and not used: as if they had not been given.
  void give_back(const Wave& wave);

  /// True where a policy differs from `leader` in one parameter at most and `expected_us` is short enough to be worth
  /// measuring beside a leader that takes `leader_us`. Of an ordinal parameter, these are the two values next to the
  /// leader's, and beyond them one an octave.
  bool is_near_relative(const Policy& policy, const Policy& leader, double expected_us, double leader_us) const;

  /// Near relatives that next() has not given yet; not to be asked for again.
  Wave take_relatives(const Policy& leader, double leader_us);

  /// True for policies that come first: one candidate of each is measured, whatever is expected of it.
  bool comes_first(std::size_t place) const { return comes_first_[place]; }

  /// The policies that next() has not given yet, in the order of the ranking.
  Wave left() const;

  /// The most that any of `places` is expected to improve on the leader; 0 when there are none.
  double best_gain(const Wave& places, double leader_us);

  Surrogate& surrogate() { return surrogate_; }
  const Surrogate& surrogate() const { return surrogate_; }

 private:
  void put_first();

  const Problem& problem_;
  const TuningOptions& options_;
  Surrogate surrogate_;
  std::vector<RankedPolicy> ranking_;
  std::vector<Trial> rejected_;
  std::size_t valid_policies_;
  std::vector<std::size_t> points_;  ///< in the surrogate, of the ranking
  std::vector<bool> comes_first_, is_taken_;
  Wave first_;  ///< in reverse: the next is the last
};

/// The candidates whose relatives are measured at the end of a search: the fastest one, and the fastest with each value
/// of a named parameter that is nearly as fast. The surrogate takes values without an order for equally alike, and
/// knows little of how one does where another leads. `measured`: fastest first, one at least.
std::vector<Candidate> leaders_of(const std::vector<const Trial*>& measured, const ParameterSpace& space);

}  // namespace hone
