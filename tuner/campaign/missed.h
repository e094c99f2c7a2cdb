// list_missed(): what sessions asked for and did not find tuned.
#pragma once

#include <vector>

#include "cache/store.h"
#include "tuner/campaign/campaign.h"

namespace hone::tuner {

/// The missed problems of families that are built in, the heaviest first, each for the device that missed it and
/// weighed by how often that was; those that sessions of one objective missed. Throws StoreError.
std::vector<WeightedProblem> list_missed(const cache::Store& store, Objective objective);

}  // namespace hone::tuner
