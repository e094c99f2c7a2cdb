// The selection of winners and trials for the page of `hone report`, which has no room for all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

/// A winner that may be shown, with the cache that it is of.
struct ShownWinner {
  const cache::StoredWinner* stored = nullptr;
  std::size_t cache = 0;
};

/// The newest tuned winners come first.
bool is_shown_before(const ShownWinner& a, const ShownWinner& b);

/// The winners whose trials are read, in this order: of every sweep the problem that moves the most bytes, then the
/// second of every sweep, and so on.
std::vector<ShownWinner> in_order_of_tunings(std::vector<ShownWinner> entries);

/// The trials that stand for all `count`, which are sorted by time: half of them are the fastest, and half are spread
/// evenly over the others.
class TrialSample {
 public:
  TrialSample(std::size_t count, std::size_t most)
      : first_(count <= most ? count : most / 2), step_((count - first_) / std::max<std::size_t>(most / 2, 1) + 1) {}
  bool has(std::size_t at) const { return at < first_ || (at - first_) % step_ == 0; }

 private:
  std::size_t first_, step_;
};

/// True if a policy has a value of a parameter that no earlier one had. The fastest candidate with each value is what
/// the page says of it.
bool add_values(std::string_view policy, std::set<std::string_view>& values);

/// The measured trials that were faster than all before them, in the order of measuring.
std::set<const cache::TrialRecord*> record_setters(const std::vector<cache::TrialRecord>& trials);

}  // namespace hone::tuner
