#include "tuner/campaign/missed.h"

#include <algorithm>
#include <optional>

#include "tuner/problems/problem_text.h"

namespace hone::tuner {

std::vector<WeightedProblem> list_missed(const cache::Store& store, Objective objective) {
  std::vector<WeightedProblem> missed;
  for (const cache::StoredMiss& stored : store.misses()) {
    const cache::MissRecord& miss = stored.miss;
    if (miss.key.problem.objective != name(objective)) continue;
    if (is_empty_class(miss.extents)) continue;  // noted by an earlier version
    Extents extents = miss.extents;
    extents[0] = std::max<std::int64_t>(extents[0], 1);
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
