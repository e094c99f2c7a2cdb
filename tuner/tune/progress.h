// CampaignProgress: how far a campaign is, how long it will take, and the line that says so.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
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

  /// `lane` counts the devices that work at the same time.
  void begin(std::string problem, TimePoint now, std::size_t lane = 0);
  void update(const TuningProgress& progress, std::size_t lane = 0);
  void end(TimePoint now, std::size_t lane = 0);

  /// Work between problems, which is no problem of its own and takes no part in the times.
  void begin_other(std::string what, std::size_t lane = 0);
  void end_other(std::size_t lane = 0);

  /// "[ 3/15]": the running problem, or the one that ended last.
  std::string position(std::size_t lane = 0) const;

  /// Time that remains: problems take as long as the finished ones did on average, or their whole budget before
  /// one has finished; divided among the devices that are at work. Never more than what is left of the total budget.
  std::chrono::milliseconds remaining(TimePoint now) const;

  /// "[ 3/15] sum f32 2^12  measuring 12/48  best 5.31 µs  about 24 s left", at most `columns` wide: first the phase
  /// goes, then the best time, then the problem; at last the rest is cut. With several devices it tells of the one that
  /// reported last, and how many more are at work.
  std::string line(TimePoint now, std::size_t columns) const;

 private:
  std::size_t problems_;
  Duration budget_;
  std::optional<TimePoint> deadline_;
  std::size_t ended_ = 0;
  Duration time_in_ended_{};
  struct Running {
    std::string problem;
    std::size_t place = 0;  ///< among the problems, from 1; 0: no problem
    TimePoint began;
    TuningProgress tuning = {};
  };
  const Running* shown() const;

  std::size_t begun_ = 0;
  std::size_t lanes_ = 1;
  std::map<std::size_t, Running> running_;  ///< by lane
  std::size_t last_lane_ = 0;               ///< that reported
  std::size_t last_place_ = 0;              ///< of the problem that ended last
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
