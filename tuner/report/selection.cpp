#include "tuner/report/selection.h"

#include <limits>
#include <tuple>
#include <utility>

#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using cache::TrialRecord;

/// Winners of one sweep of sizes have this in common.
auto sweep_of(const ShownWinner& entry) {
  const cache::KeyRecord& key = entry.stored->key;
  return std::tie(entry.cache, key.device.kind, key.device.identity, key.problem.family, key.problem.operation,
                  key.problem.dtype, key.problem.launch_context);
}

}  // namespace

bool add_values(std::string_view policy, std::set<std::string_view>& values) {
  bool is_new = false;
  while (!policy.empty()) {
    const std::string_view item = policy.substr(0, policy.find(' '));
    is_new = values.insert(item).second || is_new;
    policy.remove_prefix(std::min(policy.size(), item.size() + 1));
  }
  return is_new;
}

std::set<const TrialRecord*> record_setters(const std::vector<TrialRecord>& trials) {
  std::vector<const TrialRecord*> measured;
  for (const TrialRecord& trial : trials)
    if (trial.verdict == "ok" && trial.sequence > 0) measured.push_back(&trial);
  std::ranges::sort(measured, {}, &TrialRecord::sequence);
  std::set<const TrialRecord*> setters;
  double best_us = std::numeric_limits<double>::infinity();
  for (const TrialRecord* trial : measured) {
    if (trial->median_us >= best_us) continue;
    best_us = trial->median_us;
    setters.insert(trial);
  }
  return setters;
}

bool is_shown_before(const ShownWinner& a, const ShownWinner& b) {
  return std::pair(a.stored->winner.tuned, a.stored->id) > std::pair(b.stored->winner.tuned, b.stored->id);
}

std::vector<ShownWinner> in_order_of_tunings(std::vector<ShownWinner> entries) {
  std::erase_if(entries, [](const ShownWinner& entry) { return !is_measured(*entry.stored); });
  std::stable_sort(entries.begin(), entries.end(), [](const ShownWinner& a, const ShownWinner& b) {
    const auto sweep_a = sweep_of(a), sweep_b = sweep_of(b);
    return sweep_a != sweep_b ? sweep_a < sweep_b : a.stored->winner.bytes_moved > b.stored->winner.bytes_moved;
  });
  std::vector<std::pair<int, ShownWinner>> ranked;
  for (const ShownWinner& entry : entries) {
    const bool follows = !ranked.empty() && sweep_of(ranked.back().second) == sweep_of(entry);
    ranked.emplace_back(follows ? ranked.back().first + 1 : 0, entry);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(ranked.begin(), ranked.end(), entries.begin(), [](const auto& pair) { return pair.second; });
  return entries;
}

}  // namespace hone::tuner
