#include "tuner/campaign/runners_up.h"

#include <algorithm>
#include <limits>

#include "tuner/problems/stored_trials.h"

namespace hone::tuner {
namespace {

constexpr std::size_t kMost = 8;
constexpr double kMostBehind = 1.05;

bool contains(const std::vector<Candidate>& candidates, const Candidate& candidate) {
  return std::find(candidates.begin(), candidates.end(), candidate) != candidates.end();
}

/// As RunnersUp::ratio().
std::optional<double> ratio_of(const Trial& trial, double winner_us) {
  if (trial.verdict == Verdict::failed || trial.verdict == Verdict::wrong)
    return std::numeric_limits<double>::infinity();
  if (trial.verdict == Verdict::ok && trial.samples > 0) return trial.median_us / winner_us;
  const bool is_expected = trial.reason.code == ReasonCode::not_measured_gain && trial.policies == 1;
  return is_expected ? std::optional(trial.reason.numbers[0] / winner_us) : std::nullopt;
}

}  // namespace

std::optional<double> RunnersUp::ratio(std::size_t problem, const Candidate& candidate) {
  for (const auto& [known, ratio] : tuned(problem).ratios)
    if (known == candidate) return ratio;
  return std::nullopt;
}

const RunnersUp::Tuned& RunnersUp::tuned(std::size_t problem) {
  const auto [at, is_new] = tuned_.try_emplace(problem);
  Tuned& result = at->second;
  if (!is_new) return result;
  std::optional<Tuning> tuning = stored_tuning(store_, facts_, problems_[problem]);
  if (!tuning || !tuning->winner) return result;
  result.tuning_ms = tuning->compile_ms + tuning->measure_ms;
  const double winner_us = tuning->trials[*tuning->winner].median_us;
  std::stable_sort(tuning->trials.begin(), tuning->trials.end(),
                   [](const Trial& a, const Trial& b) { return a.median_us < b.median_us; });
  for (const Trial& trial : tuning->trials) {
    const std::optional<double> ratio = ratio_of(trial, winner_us);
    if (!ratio) continue;
    result.ratios.emplace_back(trial.candidate, *ratio);
    const bool is_near = trial.verdict == Verdict::ok && *ratio <= kMostBehind;
    if (is_near && result.runners_up.size() < kMost && !contains(winners_, trial.candidate))
      result.runners_up.push_back(trial.candidate);
  }
  return result;
}

}  // namespace hone::tuner
