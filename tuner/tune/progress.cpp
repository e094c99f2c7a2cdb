#include "tuner/tune/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr std::array<std::string_view, 3> kPhaseNames{"compiling", "measuring", "verifying"};

}  // namespace

CampaignProgress::CampaignProgress(std::size_t problems, Duration budget, std::optional<Duration> total_budget,
                                   TimePoint start)
    : problems_(problems), budget_(budget) {
  if (total_budget) deadline_ = start + *total_budget;
}

void CampaignProgress::begin(std::string problem, TimePoint now, std::size_t lane) {
  running_[lane] = {.problem = std::move(problem), .place = ++begun_, .began = now};
  lanes_ = std::max(lanes_, running_.size());
  last_lane_ = lane;
}

void CampaignProgress::begin_other(std::string what, std::size_t lane) {
  running_[lane] = {.problem = std::move(what), .place = 0, .began = {}};
  last_lane_ = lane;
}

void CampaignProgress::end_other(std::size_t lane) { running_.erase(lane); }

void CampaignProgress::update(const TuningProgress& progress, std::size_t lane) {
  if (const auto found = running_.find(lane); found != running_.end()) found->second.tuning = progress;
  last_lane_ = lane;
}

void CampaignProgress::end(TimePoint now, std::size_t lane) {
  const auto found = running_.find(lane);
  if (found != running_.end()) {
    time_in_ended_ += now - found->second.began;
    last_place_ = found->second.place;
    running_.erase(found);
  }
  ++ended_;
}

std::string CampaignProgress::position(std::size_t lane) const {
  const std::string total = fmt::format("{}", problems_);
  const auto found = running_.find(lane);
  const std::size_t place = found != running_.end() && found->second.place > 0 ? found->second.place : last_place_;
  return fmt::format("[{:>{}}/{}]", place, total.size(), total);
}

milliseconds CampaignProgress::remaining(TimePoint now) const {
  const Duration expected = ended_ == 0 ? budget_ : time_in_ended_ / static_cast<Duration::rep>(ended_);
  Duration left{};
  std::size_t waiting = problems_ - std::min(ended_, problems_);
  for (const auto& [lane, running] : running_) {
    if (running.place == 0 || waiting == 0) continue;
    left += std::max(expected - (now - running.began), Duration::zero());
    --waiting;
  }
  left += expected * static_cast<Duration::rep>(waiting);
  left /= static_cast<Duration::rep>(lanes_);
  if (deadline_) left = std::min(left, std::max(*deadline_ - now, Duration::zero()));
  return duration_cast<milliseconds>(left);
}

const CampaignProgress::Running* CampaignProgress::shown() const {
  const auto last = running_.find(last_lane_);
  if (last != running_.end()) return &last->second;
  return running_.empty() ? nullptr : &running_.begin()->second;
}

std::string CampaignProgress::line(TimePoint now, std::size_t columns) const {
  static const Running kNothing{};
  const Running& running = shown() ? *shown() : kNothing;
  const TuningProgress& tuning = running.tuning;
  const std::size_t others = running_.size() > 1 ? running_.size() - 1 : 0;
  const std::string head = fmt::format("{} {}{}", position(last_lane_), running.problem,
                                       others > 0 ? fmt::format(" (+{} more)", others) : "");
  const std::string phase =
      tuning.total > 0
          ? fmt::format("  {} {}/{}", kPhaseNames[static_cast<std::size_t>(tuning.phase)], tuning.done, tuning.total)
          : std::string{};
  const std::string best = tuning.best_us > 0 ? fmt::format("  best {} µs", format_us(tuning.best_us)) : std::string{};
  const std::string left = fmt::format("  about {} left", format_duration(remaining(now)));
  for (const std::string& text :
       {head + phase + best + left, head + best + left, head + left, position(last_lane_) + left})
    if (display_width(text) <= columns) return text;
  return truncate(head, columns);
}

bool Throttle::pass(TimePoint now) {
  if (last_ && now - *last_ < interval_) return false;
  last_ = now;
  return true;
}

}  // namespace hone::tuner
