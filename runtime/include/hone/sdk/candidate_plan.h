// plan_candidates(): the candidates of a problem as a search would list them, compiled but not measured.
#pragma once

#include <cstddef>
#include <vector>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/problem.h>

namespace hone {

struct CandidatePlan {
  std::vector<Trial> candidates =
      {};                            ///< best prediction first: resources, resident blocks, bytes in flight, prediction
  std::vector<Trial> rejected = {};  ///< with reasons, in the order of the ranking
  std::size_t ranked = 0;            ///< policies that are valid and not pruned before compiling
  std::size_t compiled = 0;          ///< those of them that were compiled, the most promising first
};

/// Compiles the `most_policies` policies that promise most by the occupancy model, and lists their candidates. Nothing
/// is launched, so the device may be one of make_absent_gpu(); a present device with equal facts gives an equal plan.
/// Throws Error: invalid_argument (a refused problem), unsupported (no compiler, or one that does not know the
/// architecture). A policy that does not compile or load is a rejected trial.
CandidatePlan plan_candidates(Device& device, const Problem& problem, std::size_t most_policies);

/// The same of given policies alone, in the order of their predictions.
CandidatePlan plan_candidates(Device& device, const Problem& problem, const std::vector<Policy>& policies);

}  // namespace hone
