// ReasonCounts: why candidates were not measured or not usable, and how many for each reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::tuner {

/// A text with every number replaced by "…".
std::string without_numbers(std::string_view text);

struct ReasonCount {
  std::string verdict;  ///< "rejected", "wrong", "failed"
  std::string reason;   ///< its first line, as it was given, or without_numbers() where several are counted
  int count = 0;

  bool operator==(const ReasonCount&) const = default;
};

/// Reasons that have the same verdict and differ in numbers alone count as one.
class ReasonCounts {
 public:
  void add(std::string_view verdict, std::string_view reason, int count = 1);

  /// The most frequent first; of equal ones that which came first.
  std::vector<ReasonCount> most_frequent_first() const;

 private:
  std::vector<ReasonCount> counts_;
};

}  // namespace hone::tuner
