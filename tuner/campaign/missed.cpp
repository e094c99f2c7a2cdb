#include "tuner/campaign/missed.h"

#include <algorithm>
#include <optional>

#include "tuner/campaign/problem_text.h"

namespace hone::tuner {

std::vector<WeightedProblem> list_missed(const cache::Store& store) {
  std::vector<WeightedProblem> missed;
  for (const cache::StoredMiss& stored : store.misses()) {
    const cache::MissRecord& miss = stored.miss;
    Extents extents = miss.extents;
    extents[0] = std::max<std::int64_t>(extents[0], 1);  // an empty array shares the smallest class, and measures nothing
    const std::optional<Problem> problem = problem_of(miss.key.problem, extents);
    if (!problem) continue;
    WeightedProblem weighted{.problem = *problem,
                             .weight = static_cast<double>(std::max<std::int64_t>(stored.weight, 1)),
                             .identity = device_identity(miss.key.device.kind, miss.key.device.identity),
                             .again_when_stale = miss.reason == cache::kOtherDriver};
    missed.push_back(std::move(weighted));
  }
  return missed;
}

}  // namespace hone::tuner
