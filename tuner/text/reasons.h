// ReasonCounts: why candidates were not measured or not usable, and how many for each reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hone/reason.h>

namespace hone::tuner {

struct ReasonCount {
  std::string verdict;  ///< "rejected", "wrong", "failed"
  Reason reason;        ///< the first of them
  int count = 0;
  bool varies = false;  ///< they differ in their numbers, or in the message of what went wrong

  /// In words, without what they differ in.
  std::string text() const;

  bool operator==(const ReasonCount&) const = default;
};

/// Reasons that have the same verdict and are alike (Reason::is_like()) count as one.
class ReasonCounts {
 public:
  void add(std::string_view verdict, const Reason& reason, int count = 1);
  void add(const ReasonCount& counted);

  /// The most frequent first; of equal ones that which came first.
  std::vector<ReasonCount> most_frequent_first() const;

 private:
  std::vector<ReasonCount> counts_;
};

}  // namespace hone::tuner
