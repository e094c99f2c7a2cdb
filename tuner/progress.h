// CampaignProgress: how far a campaign is, how long it will take, and the line that says so.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <hone/tuning.h>

namespace hone::tuner {

/// Pure: it is told what happens and when, and never asks a clock.
class CampaignProgress {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  /// `budget` is what one problem may take at most; `total_budget` what all may take from `start` on.
  CampaignProgress(std::size_t problems, Duration budget, std::optional<Duration> total_budget, TimePoint start);

  void begin(std::string problem, TimePoint now);
  void update(const TuningProgress& progress);
  void end(TimePoint now);

  /// "[ 3/15]": the running problem, or the one that ended last.
  std::string position() const;

  /// Time that remains: problems take as long as the finished ones did on average, or their whole budget before
  /// one has finished. Never more than what is left of the total budget.
  std::chrono::milliseconds remaining(TimePoint now) const;

  /// "[ 3/15] sum f32 2^12  measuring 12/48  best 5.31 µs  about 24 s left", at most `columns` wide: first the phase
  /// goes, then the rest is cut.
  std::string line(TimePoint now, std::size_t columns) const;

 private:
  std::size_t problems_;
  Duration budget_;
  std::optional<TimePoint> deadline_;
  std::size_t ended_ = 0;
  Duration time_in_ended_{};
  std::optional<TimePoint> began_;  ///< of the running problem
  std::string problem_;
  TuningProgress tuning_;
};

/// Lets at most one event through per `interval`, so that a terminal is not flooded.
class Throttle {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  explicit Throttle(std::chrono::milliseconds interval) : interval_(interval) {}

  bool pass(TimePoint now);

 private:
  std::chrono::milliseconds interval_;
  std::optional<TimePoint> last_;
};

}  // namespace hone::tuner
