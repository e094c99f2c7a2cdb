#include "runtime/choose/candidate_measurer.h"

#include <algorithm>
#include <utility>

namespace hone {

std::vector<MeasuredPoint> CandidateMeasurer::measure(std::vector<QueuedCandidate> group,
                                                      const std::vector<std::shared_ptr<const Module>>& modules,
                                                      const RaceLimits& limits,
                                                      const std::function<void(int done)>& on_measured) {
  std::vector<Contender*> contenders;
  for (std::size_t i = 0; i < group.size(); ++i) {
    Contender& contender = contenders_.emplace_back();
    contender.trial = std::move(group[i].trial);
    contender.trial.verdict = Verdict::ok;
    contender.trial.reason = {};
    contender.loaded = {contender.trial.candidate, modules[i]};
    contenders.push_back(&contender);
  }
  race_.qualify(contenders, limits, on_measured);
  std::vector<MeasuredPoint> points;
  for (std::size_t i = 0; i < contenders.size(); ++i)
    if (const Trial& trial = contenders[i]->trial; trial.samples > 0)
      points.push_back({.point = group[i].point, .median_us = trial.median_us});
  measured_count_ += static_cast<int>(points.size());
  return points;
}

std::vector<const Trial*> CandidateMeasurer::measured() const {
  std::vector<const Trial*> trials;
  for (const Contender& contender : contenders_)
    if (contender.trial.samples > 0) trials.push_back(&contender.trial);
  std::stable_sort(trials.begin(), trials.end(),
                   [](const Trial* a, const Trial* b) { return a->median_us < b->median_us; });
  return trials;
}

}  // namespace hone
