#include "tuner/campaign/runners_up.h"

#include <algorithm>
#include <optional>

#include "tuner/problems/stored_trials.h"

namespace hone::tuner {
namespace {

constexpr std::size_t kMost = 8;
constexpr double kMostBehind = 1.05;

bool contains(const std::vector<Candidate>& candidates, const Candidate& candidate) {
  return std::find(candidates.begin(), candidates.end(), candidate) != candidates.end();
}

}  // namespace

bool RunnersUp::is_known(std::size_t problem, const Candidate& candidate) {
  return contains(tuned(problem).known, candidate);
}

const RunnersUp::Tuned& RunnersUp::tuned(std::size_t problem) {
  const auto [at, is_new] = tuned_.try_emplace(problem);
  Tuned& result = at->second;
  if (!is_new) return result;
  std::optional<Tuning> tuning = stored_tuning(store_, facts_, problems_[problem]);
  if (!tuning || !tuning->winner) return result;
  result.tuning_ms = tuning->compile_ms + tuning->measure_ms;
  const double most_us = kMostBehind * tuning->trials[*tuning->winner].median_us;
  std::stable_sort(tuning->trials.begin(), tuning->trials.end(),
                   [](const Trial& a, const Trial& b) { return a.median_us < b.median_us; });
  for (const Trial& trial : tuning->trials) {
    const bool is_measured = trial.verdict == Verdict::ok && trial.samples > 0;
    if (!is_measured && trial.verdict == Verdict::rejected) continue;
    result.known.push_back(trial.candidate);
    const bool is_near = is_measured && trial.median_us <= most_us;
    if (is_near && result.runners_up.size() < kMost && !contains(winners_, trial.candidate))
      result.runners_up.push_back(trial.candidate);
  }
  return result;
}

}  // namespace hone::tuner
