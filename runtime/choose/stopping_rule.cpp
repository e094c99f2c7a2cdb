#include "runtime/choose/stopping_rule.h"

#include <algorithm>
#include <vector>

#include <hone/sdk/rank_correlation.h>

namespace hone {
namespace {

/// Candidates that are expected to improve on the leader by less are not worth measuring. Where many are about as fast
/// as the leader, each promises that little, and all that a search finds among them is chance: after a share of all
/// candidates, one must promise more, and after a larger one nothing does. Small spaces have a floor. Of 228 recorded
/// searches through reductions (benchmarks/results/tuner_regret-*, 2026-11-23), one in six measured more than the
/// larger share, 29 % at most.
///
/// The surrogate may expect little of one candidate, and as little of fifty others, one of which is the fastest.
/// Simulated for 149 problems on an H100 and an H200 (docs/tuning.md, "Simulated searches"), winners were 0.2 and 0.3 %
/// behind with the gain that campaigns ask for, with 38 and 34 candidates measured; with a tenth of it 0.1 %, with 44
/// and 46. A campaign has more use for the time.
constexpr double kLeastGain = 0.0002;
constexpr double kLeastGainInCampaigns = 0.002;
constexpr double kLateGain = 0.01;
constexpr double kLateShare = 0.17;
constexpr double kMostShare = 0.2;
constexpr double kMostOfFew = 16;

/// Before so many have been measured, expectations are worth nothing. That is a floor for small spaces; in large ones
/// it is a share of the policies, half the error of the model, up to a maximum. Chosen by simulating searches with a
/// model that says nothing through recorded times of all of 316 to 452 policies of a convolution on three GPUs (A100,
/// A4000 and A6000; public cache files of Kernel Tuner, 2026-11): with twelve alone, winners were 1 % behind in the
/// mean and 17 % at worst, and 9 % of the policies were measured; with this rule 0.4 % and 6 %, and 15 %.
constexpr int kFewestMeasured = 12;
constexpr double kSharePerError = 0.5;
constexpr double kLargestShare = 0.15;

/// A leader this close to what memory and launching take at least cannot be beaten by anything worth finding.
constexpr double kRooflineSlack = 1.005;

}  // namespace

int StoppingRule::fewest_measured(const SearchState& state) {
  const double share = std::min(kSharePerError * state.model_error, kLargestShare);
  return std::max(kFewestMeasured, static_cast<int>(share * static_cast<double>(state.policies)));
}

double StoppingRule::least_gain(const SearchState& state) {
  if (state.measured >= std::max(kMostOfFew, kLateShare * state.candidates)) return kLateGain;
  return state.others_wait ? kLeastGainInCampaigns : kLeastGain;
}

bool StoppingRule::is_enough(const SearchState& state) {
  return state.measured >= static_cast<int>(std::max(kMostOfFew, kMostShare * state.candidates));
}

bool StoppingRule::is_at_roofline(double us) const { return us <= kRooflineSlack * roofline_us_; }

Reason StoppingRule::why_not(const SearchState& state, bool must_be_measured, const Expectation& expected) const {
  if (measures_all_ || state.measured == 0) return {};
  if (is_at_roofline(state.leader_us)) return ReasonCode::not_measured_near_roofline;
  const bool is_worth_it = must_be_measured || state.measured < fewest_measured(state) ||
                           expected.gain >= least_gain(state);
  if (is_worth_it && !is_enough(state)) return {};
  return {ReasonCode::not_measured_gain, {expected.us, state.leader_us, 100 * expected.gain}};
}

std::optional<SearchEnd> StoppingRule::end(const SearchState& state,
                                           const std::function<std::optional<double>()>& best_gain_left) const {
  if (state.is_stopped) return SearchEnd::stopped;
  if (state.is_late) return SearchEnd::budget_spent;
  if (measures_all_ || !state.has_candidates) return std::nullopt;
  if (is_at_roofline(state.leader_us)) return SearchEnd::near_roofline;
  if (state.measured < fewest_measured(state) && !is_enough(state)) return std::nullopt;
  const std::optional<double> gain = best_gain_left();
  const bool is_over = gain && (*gain < least_gain(state) || is_enough(state));
  return is_over ? std::optional(SearchEnd::rest_expected_slower) : std::nullopt;
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

SearchEnd search_end_of(std::span<const Trial> trials, bool budget_spent) {
  const auto has = [&](ReasonCode code) {
    return std::ranges::any_of(trials, [&](const Trial& trial) { return trial.reason.code == code; });
  };
  if (has(ReasonCode::not_compiled_stopped) || has(ReasonCode::not_measured_stopped)) return SearchEnd::stopped;
  if (budget_spent) return SearchEnd::budget_spent;
  if (has(ReasonCode::not_compiled_near_roofline) || has(ReasonCode::not_measured_near_roofline))
    return SearchEnd::near_roofline;
  const bool has_left_any = has(ReasonCode::not_compiled_slower) || has(ReasonCode::not_measured_gain);
  return has_left_any ? SearchEnd::rest_expected_slower : SearchEnd::everything_searched;
}

double rank_correlation_of(std::span<const Trial> trials) {
  std::vector<double> predicted_us, measured_us;
  for (const Trial& trial : trials) {
    if (trial.samples == 0 || trial.predicted_us <= 0) continue;
    predicted_us.push_back(trial.predicted_us);
    measured_us.push_back(trial.median_us);
  }
  return spearman(predicted_us, measured_us);
}

}  // namespace hone
