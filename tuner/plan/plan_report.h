// The output of hone plan: the candidates of a problem, or the predicted winners of several.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <vector>

#include <hone/candidate.h>
#include <hone/device_facts.h>
#include <hone/problem.h>
#include <hone/sdk/candidate_plan.h>

#include "tuner/context/context.h"

namespace hone::tuner {

struct PlannedProblem {
  Problem problem;
  CandidatePlan plan;
  Winner winner;  ///< predicted: the occupancy model's first choice, as a call with nothing tuned would take it
};

/// Every candidate of one problem, and why the others are none.
void print_candidates(const PlannedProblem& planned, const DeviceFacts& facts, const Context& context);

/// A row for each problem.
void print_winners(const std::vector<PlannedProblem>& planned, const DeviceFacts& facts, const Context& context);

nlohmann::ordered_json to_json(const PlannedProblem& planned);

}  // namespace hone::tuner
