#include "tuner/winners/misfit.h"

#include <optional>
#include <utility>

#include <hone/sdk/stored_policy.h>

#include "tuner/problems/problem_text.h"
#include "tuner/winners/problem_winners.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {

std::string misfit_of(const cache::StoredWinner& stored) {
  const std::optional<Problem> problem = problem_of(stored.key.problem, extents_of_class(stored));
  if (!problem) return "";
  const cache::CandidateRecord& candidate = stored.winner.candidate;
  std::string misfit;
  if (stored_policy(*problem, candidate.policy, candidate.block_threads, candidate.max_blocks, &misfit)) return "";
  return is_of_source(stored, *problem) ? misfit : "";
}

std::vector<Misfit> misfits_of(const std::vector<cache::StoredWinner>& winners) {
  std::vector<Misfit> misfits;
  for (const cache::StoredWinner& stored : winners)
    if (std::string why = misfit_of(stored); !why.empty()) misfits.push_back({stored.id, std::move(why)});
  return misfits;
}

}  // namespace hone::tuner
