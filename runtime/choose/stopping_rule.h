// StoppingRule: what a search does not measure, and when it ends. Knows numbers alone.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <hone/tuning.h>

namespace hone {

/// How far a search has come.
struct SearchState {
  int measured = 0;                                            ///< candidates
  std::size_t policies = 0;                                    ///< that may be compiled
  double candidates = 0;                                       ///< of all valid policies, as far as is known; 0: not
  double model_error = 0;  ///< of the logarithm of times, among those measured; see Surrogate::error()
  double leader_us = std::numeric_limits<double>::infinity();  ///< the lowest median; infinite before the first
  bool has_candidates = false;                                 ///< some policy has had one
  bool others_wait = false;                                    ///< other problems will be tuned after this one
  bool is_stopped = false;                                     ///< by the caller
  bool is_late = false;                                        ///< past the deadline
};

/// The time that a candidate which was not measured so far is expected to take.
struct Expectation {
  double us = 0;
  double gain = 0;  ///< as a share of the leader's time
};

class StoppingRule {
 public:
  /// `roofline_us`: what memory and launching take at least. `measures_all`: everything is measured, whatever is
  /// expected, unless the budget ends it.
  StoppingRule(double roofline_us, bool measures_all) : roofline_us_(roofline_us), measures_all_(measures_all) {}

  bool measures_all() const { return measures_all_; }

  /// So many candidates are measured before anything that is expected counts: twelve, or the more of them the further
  /// the model was off.
  static int fewest_measured(const SearchState& state);

  /// A candidate must promise so much: more where other problems wait, and once a share of all candidates has been
  /// measured.
  static double least_gain(const SearchState& state);

  /// True once so many candidates have been measured that no further one is.
  static bool is_enough(const SearchState& state);

  /// True for a time so close to the roofline that nothing worth finding beats it.
  bool is_at_roofline(double us) const;

  /// Why a candidate is not measured; none if it is. `must_be_measured`: whatever is expected of it, unless the leader
  /// is at the roofline, or is_enough().
  Reason why_not(const SearchState& state, bool must_be_measured, const Expectation& expected) const;

  /// Why a search ends; nullopt: it goes on. `best_gain_left()`, the most that any policy which is not compiled is
  /// expected to improve on the leader, and nullopt when there is none, is asked for only where it matters: it takes
  /// long.
  std::optional<SearchEnd> end(const SearchState& state,
                               const std::function<std::optional<double>()>& best_gain_left) const;

 private:
  const double roofline_us_;
  const bool measures_all_;
};

/// Why the policies that are left when a search ends are not compiled.
Reason why_not_compiled(SearchEnd end, double leader_us);

/// Why a search that left these trials ended: the inverse of why_not_compiled(), for tunings that a cache has kept.
SearchEnd search_end_of(std::span<const Trial> trials, bool budget_spent);

/// Spearman's, of predicted with measured times; 0 with fewer than two.
double rank_correlation_of(std::span<const Trial> trials);

}  // namespace hone
