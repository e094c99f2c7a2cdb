#include "tuner/winners/problem_winners.h"

#include <algorithm>
#include <utility>

#include "cache/identity.h"
#include "tuner/problems/problem_text.h"
#include "tuner/winners/device_filter.h"

namespace hone::tuner {

using cache::StoredWinner;

std::vector<StoredWinner> winners_of(const std::vector<StoredWinner>& all, const Problem& problem,
                                     const std::string& device, Objective objective) {
  std::vector<StoredWinner> winners;
  for (const StoredWinner& stored : all) {
    if (!is_described(problem, stored.key.problem) || !matches_device(stored.key.device, device)) continue;
    if (stored.key.problem.objective != name(objective)) continue;
    const auto same = std::find_if(winners.begin(), winners.end(), [&](const StoredWinner& other) {
      return cache::same_device(other.key.device, stored.key.device);
    });
    if (same == winners.end()) {
      winners.push_back(stored);
    } else if (std::pair(stored.winner.tuned, stored.id) > std::pair(same->winner.tuned, same->id)) {
      *same = stored;
    }
  }
  return winners;
}

}  // namespace hone::tuner
