// Race: measures candidates against each other and drops the losers early.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <vector>

#include <hone/candidate.h>

#include "runtime/measure/batch.h"
#include "runtime/measure/elimination.h"

namespace hone {

using Clock = std::chrono::steady_clock;

inline double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// When to stop measuring.
struct RaceLimits {
  Clock::time_point deadline;
  std::stop_token stop = {};

  bool reached() const { return stop.stop_requested() || Clock::now() >= deadline; }
};

/// One candidate in the race: the trial to fill in, its code and its samples.
struct Contender {
  Trial trial;
  LoadedCandidate loaded;
  Racer racer = {};
  int calls_per_sample = 1;
  std::unique_ptr<Batch> batch = {};
};

/// Measures contenders on one bench. Each sample is a batch of calls, long enough for the resolution of the events, on
/// inputs in the state that the workload says. Contenders may come in groups: qualify() takes a few samples of each of
/// a group, in turn; finish() narrows all that were qualified to those that nobody beats (see eliminate()). Samples
/// during which the device was throttled or busy with others' work are thrown away and counted, unless that is so most
/// of the time: then it is how the device runs.
class Race {
 public:
  explicit Race(const Bench& bench, std::uint32_t seed = 1) : bench_(bench), random_(seed), seed_(seed) {}
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  /// Takes the first samples, and writes median, spread and samples into the trials. The very first contender of the
  /// race is always measured; others that are not reached before the limits become `rejected`, those that cannot run
  /// `failed`. Contenders must outlive the race. `on_measured(done)` is called after each.
  void qualify(std::span<Contender* const> contenders, const RaceLimits& limits,
               const std::function<void(int done)>& on_measured);

  /// The contenders that cannot be told from the fastest, it first; updates all trials.
  std::vector<Contender*> finish(const RaceLimits& limits);

  /// The lowest median so far; infinity before the first.
  double best_us() const { return best_us_; }

  int discarded_samples() const { return discarded_; }

 private:
  /// Finds out how many calls make a sample; false when the contender failed or is out of the race at once.
  bool prepare(Contender& contender);

  /// Takes one more sample; false when the contender failed.
  bool sample(Contender& contender);

  /// The time of one call in the contender's batch; nullopt when one failed, and the trial then says why.
  std::optional<double> time_call(Contender& contender);

  /// How many calls of a contender that takes `us` make a sample: as many as of the others, unless it is far behind.
  /// The first call of a batch finds nothing in any cache and waits for the launch: of fewer calls each bears more of
  /// that, of ten 3 % more than of twenty where they take 6 µs.
  int calls_beside_others(double us);

  /// Makes the contender's batch, if it has none of so many calls.
  void set_calls(Contender& contender, int calls) const;
  void record(Contender& contender);

  /// The median of one that dropped out becomes what it would have been in the race for as long as the leader, by what
  /// they took side by side: clocks drift, and the workspaces that it did not come to may be slower ones.
  static void put_beside(Contender& contender, const Contender& leader);

  Bench bench_;
  std::mt19937 random_;
  std::uint32_t seed_;
  std::vector<Contender*> field_;
  double best_us_ = std::numeric_limits<double>::infinity();
  double pace_us_ = std::numeric_limits<double>::infinity();  ///< the time of a call that says how many make a sample
  int calls_ = 1;                                             ///< in a sample
  bool has_begun_ = false;
  int taken_ = 0;
  int discarded_ = 0;
};

}  // namespace hone
