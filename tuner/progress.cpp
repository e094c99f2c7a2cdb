#include "tuner/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tuner/quantities.h"
#include "tuner/table.h"

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

void CampaignProgress::begin(std::string problem, TimePoint now) {
  problem_ = std::move(problem);
  tuning_ = {};
  began_ = now;
}

void CampaignProgress::update(const TuningProgress& progress) { tuning_ = progress; }

void CampaignProgress::end(TimePoint now) {
  if (began_) time_in_ended_ += now - *began_;
  began_.reset();
  ++ended_;
}

std::string CampaignProgress::position() const {
  const std::string total = fmt::format("{}", problems_);
  return fmt::format("[{:>{}}/{}]", ended_ + (began_ ? 1 : 0), total.size(), total);
}

milliseconds CampaignProgress::remaining(TimePoint now) const {
  const Duration expected = ended_ == 0 ? budget_ : time_in_ended_ / static_cast<Duration::rep>(ended_);
  Duration left{};
  std::size_t waiting = problems_ - std::min(ended_, problems_);
  if (began_ && waiting > 0) {
    left += std::max(expected - (now - *began_), Duration::zero());
    --waiting;
  }
  left += expected * static_cast<Duration::rep>(waiting);
  if (deadline_) left = std::min(left, std::max(*deadline_ - now, Duration::zero()));
  return duration_cast<milliseconds>(left);
}

std::string CampaignProgress::line(TimePoint now, std::size_t columns) const {
  const std::string head = fmt::format("{} {}", position(), problem_);
  const std::string phase =
      tuning_.total > 0
          ? fmt::format("  {} {}/{}", kPhaseNames[static_cast<std::size_t>(tuning_.phase)], tuning_.done, tuning_.total)
          : std::string{};
  const std::string best =
      tuning_.best_us > 0 ? fmt::format("  best {} µs", format_us(tuning_.best_us)) : std::string{};
  const std::string left = fmt::format("  about {} left", format_duration(remaining(now)));
  const std::string whole = head + phase + best + left;
  if (display_width(whole) <= columns) return whole;
  return truncate(head + best + left, columns);
}

bool Throttle::pass(TimePoint now) {
  if (last_ && now - *last_ < interval_) return false;
  last_ = now;
  return true;
}

}  // namespace hone::tuner
