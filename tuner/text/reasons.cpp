#include "tuner/text/reasons.h"

#include <algorithm>
#include <cstddef>

namespace hone::tuner {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string without_numbers(std::string_view text) {
  std::string result;
  bool in_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_point = in_number && text[i] == '.' && i + 1 < text.size() && is_digit(text[i + 1]);
    if (is_digit(text[i]) && !in_number) result += "…";
    if (!is_digit(text[i]) && !is_point) result.push_back(text[i]);
    in_number = is_digit(text[i]) || is_point;
  }
  return result;
}

void ReasonCounts::add(std::string_view verdict, std::string_view reason, int count) {
  const std::string_view first_line = reason.substr(0, reason.find('\n'));
  const std::string general = without_numbers(first_line);
  const auto same = std::find_if(counts_.begin(), counts_.end(), [&](const ReasonCount& known) {
    return known.verdict == verdict && without_numbers(known.reason) == general;
  });
  if (same == counts_.end()) {
    counts_.push_back({std::string(verdict), std::string(first_line), count});
    return;
  }
  same->count += count;
  if (same->reason != first_line) same->reason = general;
}

std::vector<ReasonCount> ReasonCounts::most_frequent_first() const {
  std::vector<ReasonCount> sorted = counts_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ReasonCount& a, const ReasonCount& b) { return a.count > b.count; });
  return sorted;
}

}  // namespace hone::tuner
