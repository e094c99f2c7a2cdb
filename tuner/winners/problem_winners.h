// winners_of(): the stored winners that serve one problem.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <hone/problem.h>
#include <hone/tuning.h>

#include "cache/records.h"

namespace hone::tuner {

/// Winners of `all` for the problem, each device's and toolchain's newest; one of the family's present source before
/// one of what it was before an edit, a tuned one before an untuned one. `device` is that of matches_device().
std::vector<cache::StoredWinner> winners_of(const std::vector<cache::StoredWinner>& all, const Problem& problem,
                                            const std::string& device, Objective objective = Objective::time);

/// The same for a command that needs one: throws CommandError(not_tuned), with the devices that there are, where none
/// of the problem's winners is of `device`. Empty if there is none of any device.
std::vector<cache::StoredWinner> winners_on(const std::vector<cache::StoredWinner>& all, const Problem& problem,
                                            const std::string& device, Objective objective,
                                            const std::filesystem::path& path);

/// True if a winner was found for the source that the family of `problem` has now.
bool is_of_source(const cache::StoredWinner& stored, const Problem& problem);

}  // namespace hone::tuner
