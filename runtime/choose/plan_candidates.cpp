#include <hone/sdk/candidate_plan.h>

#include <algorithm>
#include <utility>

#include <hone/error.h>
#include <hone/kernel_family.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/search/candidates.h"

namespace hone {
namespace {

CandidatePlan plan_ranked(Device& device, const Problem& problem, PolicyRanking ranking, std::size_t most_policies) {
  CandidatePlan plan{.rejected = std::move(ranking.rejected), .ranked = ranking.policies.size()};
  ranking.policies.resize(std::min(most_policies, ranking.policies.size()));
  std::vector<Unit> units;
  for (const RankedPolicy& ranked : ranking.policies) units.push_back(unit_of(problem, ranked.policy));
  BinaryMemo memo;
  const std::vector<CompileOutcome> outcomes = memo.compile(device, units);
  std::vector<CompiledPolicy> compiled;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Policy& policy = ranking.policies[i].policy;
    try {
      if (!outcomes[i].binary) throw Error(ErrorCode::compile_failed, outcomes[i].error);
      compiled.push_back(load_policy(device, problem, policy, units[i], outcomes[i].binary, &memo).compiled);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) throw;
      plan.rejected.push_back({.candidate = {policy, {}},
                               .verdict = Verdict::failed,
                               .reason = {ReasonCode::does_not_compile, error.what()}});
    }
  }
  plan.compiled = compiled.size();
  CandidateList list = list_candidates(device.facts(), problem, compiled, kWorkspaceBytes);
  plan.candidates = std::move(list.candidates);
  std::move(list.rejected.begin(), list.rejected.end(), std::back_inserter(plan.rejected));
  return plan;
}

}  // namespace

CandidatePlan plan_candidates(Device& device, const Problem& problem, std::size_t most_policies) {
  require_accepted(problem);
  return plan_ranked(device, problem, rank_policies(device.facts(), problem), most_policies);
}

CandidatePlan plan_candidates(Device& device, const Problem& problem, const std::vector<Policy>& policies) {
  require_accepted(problem);
  return plan_ranked(device, problem, rank_policies(device.facts(), problem, policies, Pruning::off), policies.size());
}

}  // namespace hone
