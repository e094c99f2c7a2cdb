#include "tuner/campaign/runners_up.h"

#include <algorithm>

#include "tuner/campaign/stored_trials.h"

namespace hone::tuner {
namespace {

constexpr std::size_t kMost = 4;
constexpr double kMostBehind = 1.05;

bool contains(const std::vector<Candidate>& candidates, const Candidate& candidate) {
  return std::find(candidates.begin(), candidates.end(), candidate) != candidates.end();
}

}  // namespace

bool RunnersUp::was_measured(std::size_t problem, const Candidate& candidate) {
  return contains(tuned(problem).measured, candidate);
}

const RunnersUp::Tuned& RunnersUp::tuned(std::size_t problem) {
  const auto [known, is_new] = tuned_.try_emplace(problem);
  Tuned& result = known->second;
  if (!is_new) return result;
  const std::optional<Tuning> tuning = stored_tuning(store_, facts_, problems_[problem]);
  if (!tuning) return result;
  for (const Trial& trial : tuning->trials) {  // best first
    if (trial.verdict != Verdict::ok || trial.samples == 0) continue;
    result.measured.push_back(trial.candidate);
    const bool is_near = tuning->winner && trial.median_us <= kMostBehind * tuning->trials[*tuning->winner].median_us;
    if (is_near && result.runners_up.size() < kMost && !contains(winners_, trial.candidate))
      result.runners_up.push_back(trial.candidate);
  }
  return result;
}

}  // namespace hone::tuner
