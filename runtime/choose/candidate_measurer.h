// CandidateMeasurer: measures groups of candidates in one race, and keeps what came of it.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <hone/device.h>

#include "runtime/choose/candidate_queue.h"
#include "runtime/measure/race.h"

namespace hone {

/// The time that one candidate took.
struct MeasuredPoint {
  std::size_t point = 0;  ///< in the surrogate
  double median_us = 0;
};

class CandidateMeasurer {
 public:
  /// `race` must outlive the measurer.
  explicit CandidateMeasurer(Race& race) : race_(race) {}

  /// Takes the first samples of each candidate; `modules` are parallel to them. Those that fail or are not reached
  /// within the limits are no part of the result. `on_measured(done)` is called after each.
  std::vector<MeasuredPoint> measure(std::vector<QueuedCandidate> group,
                                     const std::vector<std::shared_ptr<const Module>>& modules,
                                     const RaceLimits& limits, const std::function<void(int done)>& on_measured);

  /// All candidates that were given to measure(), measured or not; they stay in place.
  std::deque<Contender>& contenders() { return contenders_; }

  /// The trials that have samples, fastest first.
  std::vector<const Trial*> measured() const;

  /// How many have samples.
  int measured_count() const { return measured_count_; }

  /// The lowest median so far; infinity before the first.
  double leader_us() const { return race_.best_us(); }

 private:
  Race& race_;
  std::deque<Contender> contenders_;
  int measured_count_ = 0;
};

}  // namespace hone
