#include "tuner/text/reasons.h"

#include <algorithm>

namespace hone::tuner {

std::string ReasonCount::text() const {
  const std::string words = varies ? reason.general_text() : reason.text();
  return words.substr(0, words.find('\n'));
}

void ReasonCounts::add(std::string_view verdict, const Reason& reason, int count) {
  add({std::string(verdict), reason, count});
}

void ReasonCounts::add(const ReasonCount& counted) {
  const auto same = std::find_if(counts_.begin(), counts_.end(), [&](const ReasonCount& known) {
    return known.verdict == counted.verdict && known.reason.is_like(counted.reason);
  });
  if (same == counts_.end()) {
    counts_.push_back(counted);
    return;
  }
  same->count += counted.count;
  same->varies = same->varies || counted.varies || same->reason != counted.reason;
}

std::vector<ReasonCount> ReasonCounts::most_frequent_first() const {
  std::vector<ReasonCount> sorted = counts_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ReasonCount& a, const ReasonCount& b) { return a.count > b.count; });
  return sorted;
}

}  // namespace hone::tuner
