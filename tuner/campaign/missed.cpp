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
    Extents extents = miss.extents;
    // Empty arrays measure nothing; a lone extent of 0 shares its class with others, which do.
    for (std::int64_t& extent : extents) extent = std::max<std::int64_t>(extent, 1);
    if (size_ranges(extents) != size_ranges(miss.extents)) continue;
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
