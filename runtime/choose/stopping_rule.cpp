#include "runtime/choose/stopping_rule.h"

namespace hone {
namespace {

/// Candidates that are expected to improve on the leader by less are not worth measuring; before so many have been
/// measured, expectations are worth nothing.
constexpr double kLeastGain = 0.002;
constexpr int kFewestMeasured = 12;

/// A leader this close to what memory and launching take at least cannot be beaten by anything worth finding.
constexpr double kRooflineSlack = 1.005;

}  // namespace

bool StoppingRule::is_at_roofline(double us) const { return us <= kRooflineSlack * roofline_us_; }

Reason StoppingRule::why_not(const SearchState& state, bool must_be_measured, const Expectation& expected) const {
  if (measures_all_ || state.measured == 0) return {};
  if (is_at_roofline(state.leader_us)) return ReasonCode::not_measured_near_roofline;
  if (must_be_measured || state.measured < kFewestMeasured || expected.gain >= kLeastGain) return {};
  return {ReasonCode::not_measured_gain, {expected.us, state.leader_us, 100 * expected.gain}};
}

std::optional<SearchEnd> StoppingRule::end(const SearchState& state,
                                           const std::function<std::optional<double>()>& best_gain_left) const {
  if (state.is_stopped) return SearchEnd::stopped;
  if (state.is_late) return SearchEnd::budget_spent;
  if (measures_all_ || !state.has_candidates) return std::nullopt;
  if (is_at_roofline(state.leader_us)) return SearchEnd::near_roofline;
  if (state.measured < kFewestMeasured) return std::nullopt;
  const std::optional<double> gain = best_gain_left();
  return gain && *gain < kLeastGain ? std::optional(SearchEnd::rest_expected_slower) : std::nullopt;
}

Reason why_not_compiled(SearchEnd end, double leader_us) {
  switch (end) {
    case SearchEnd::near_roofline:
      return ReasonCode::not_compiled_near_roofline;
    case SearchEnd::rest_expected_slower:
      return {ReasonCode::not_compiled_slower, {leader_us}};
    case SearchEnd::stopped:
      return ReasonCode::not_compiled_stopped;
    case SearchEnd::budget_spent:
    case SearchEnd::everything_searched:
      break;
  }
  return ReasonCode::not_compiled_budget;
}

}  // namespace hone
