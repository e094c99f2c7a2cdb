// Race: measures candidates against each other and drops the losers early.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include <hone/candidate.h>
#include <hone/device.h>

#include "runtime/measure/batch.h"

namespace hone {

using Clock = std::chrono::steady_clock;

/// When to stop measuring.
struct RaceLimits {
  Clock::time_point qualifying_deadline;  ///< no contender gets its first samples after this
  Clock::time_point deadline;             ///< no contender gets any after this
  std::stop_token stop;

  bool reached(Clock::time_point limit) const { return stop.stop_requested() || Clock::now() >= limit; }
};

/// One candidate in the race: the trial to fill in, and its code.
struct Contender {
  Trial* trial = nullptr;
  LoadedCandidate loaded;
  std::vector<double> samples_us = {};  ///< per call
  std::unique_ptr<Batch> batch = {};    ///< one sample
};

/// Measures contenders on one workload. Each sample is a batch of calls between two device events, long enough for the
/// events' resolution, on inputs that are not in the cache. All contenders get a few samples; then the field is
/// narrowed round by round to those near the best, and the rest get more, in an order that changes every time, so that
/// a drifting clock hits all alike.
class Race {
 public:
  explicit Race(const Bench& bench) : bench_(bench) {}

  /// Writes median, spread and samples into the trials. The first contender is always measured; those that are not
  /// reached before the limits become `rejected`, those that cannot run `failed`. `on_measured(done, best_us)` is
  /// called after each contender's first samples.
  void run(std::vector<Contender>& contenders, const RaceLimits& limits,
           const std::function<void(int done, double best_us)>& on_measured);

 private:
  /// Takes the first samples; false when the contender failed or is out of the race at once.
  bool qualify(Contender& contender, double best_us);

  /// Takes one more sample; false when the contender failed.
  bool sample(Contender& contender);

  /// The time of one call in the contender's batch; nullopt when one failed, and the trial then says why.
  std::optional<double> time_call(Contender& contender);

  Bench bench_;
};

}  // namespace hone
