// winners_of(): the stored winners that serve one problem.
#pragma once

#include <string>
#include <vector>

#include <hone/problem.h>
#include <hone/tuning.h>

#include "cache/records.h"

namespace hone::tuner {

/// Winners of `all` for the problem, each device's and toolchain's newest; a tuned one before an untuned one. `device`
/// is that of matches_device().
std::vector<cache::StoredWinner> winners_of(const std::vector<cache::StoredWinner>& all, const Problem& problem,
                                            const std::string& device, Objective objective = Objective::time);

}  // namespace hone::tuner
