// Problems and candidates as JSON: how the processes of a campaign name them to each other.
#pragma once

#include <hone/candidate.h>
#include <hone/problem.h>
#include <nlohmann/json_fwd.hpp>

#include "tuner/problems/families.h"

namespace hone::tuner {

/// The readers throw nlohmann::json::exception, or CommandError(failed), for what is none.
nlohmann::json to_json(const Problem& problem);
Problem problem_from_json(const nlohmann::json& json, Families families = built_in_families());

/// By the space of the problem's family.
nlohmann::json to_json(const Candidate& candidate, const Problem& problem);
Candidate candidate_from_json(const nlohmann::json& json, const Problem& problem);

}  // namespace hone::tuner
