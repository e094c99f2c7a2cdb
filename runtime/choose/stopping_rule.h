// StoppingRule: what a search does not measure, and when it ends. Knows numbers alone.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include <hone/tuning.h>

namespace hone {

/// How far a search has come.
struct SearchState {
  int measured = 0;                                            ///< candidates
  double leader_us = std::numeric_limits<double>::infinity();  ///< the lowest median; infinite before the first
  bool has_candidates = false;                                 ///< some policy has had one
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

  /// True for a time so close to the roofline that nothing worth finding beats it.
  bool is_at_roofline(double us) const;

  /// Why a candidate is not measured; none if it is. `must_be_measured`: whatever is expected of it, unless the leader is
  /// at the roofline.
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

}  // namespace hone
