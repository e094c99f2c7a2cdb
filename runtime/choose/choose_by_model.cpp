#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/search/candidates.h"

namespace hone {

void require_accepted(const Problem& problem) {
  const std::string refusal = refusal_of(problem);
  if (!refusal.empty()) throw Error(ErrorCode::invalid_argument, refusal);
}

namespace {

ModelChoice choice_of(const Trial& trial, const CompiledCode& code) {
  ModelChoice choice{.trial = trial, .binary = code.binary, .module = code.module};
  choice.trial.is_default = true;
  return choice;
}

}  // namespace

ModelChoice choose_by_model(Device& device, const Problem& problem, std::size_t workspace_bytes, BinaryMemo& memo) {
  require_accepted(problem);
  PolicyRanking ranking = rank_policies(device.facts(), problem);
  if (ranking.policies.empty()) ranking = rank_policies(device.facts(), problem, Pruning::off);
  std::optional<ModelChoice> best, pruned;  // an opinion fails no call
  int choices = 0;
  std::string last_reason;
  for (const RankedPolicy& ranked : ranking.policies) {
    if (best && (choices == kMostFirstChoices || !may_be_better(ranked, best->trial.predicted_us))) break;
    const Unit unit = unit_of(problem, ranked.policy);
    const CompileOutcome outcome = memo.compile(device, std::span(&unit, 1)).front();
    if (!outcome.binary) {
      // If a family's plain kernel does not compile, no policy does: there is no need to try them all.
      if (last_reason.empty() && problem.family->verifier().has_reference_kernel())
        load_reference(device, problem, memo);
      last_reason = outcome.error;
      continue;
    }
    try {
      const CompiledCode code = load_policy(device, problem, ranked.policy, unit, outcome.binary);
      const auto list_with = [&](Pruning pruning) {
        return list_candidates(device.facts(), problem, std::span(&code.compiled, 1), workspace_bytes, pruning);
      };
      const CandidateList list = list_with(Pruning::on);
      if (!list.candidates.empty()) {
        const Trial& first = list.candidates.front();
        if (!best || first.predicted_us < best->trial.predicted_us) best = choice_of(first, code);
        ++choices;
        continue;
      }
      const CandidateList all = list_with(Pruning::off);
      if (!pruned && !all.candidates.empty()) pruned = choice_of(all.candidates.front(), code);
      last_reason = list.rejected.front().reason.text();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) throw;
      last_reason = error.what();
    }
  }
  if (best) return *std::move(best);
  if (pruned) return *std::move(pruned);
  if (last_reason.empty())
    last_reason = ranking.rejected.empty() ? "its space is empty" : ranking.rejected.back().reason.text();
  throw Error(ErrorCode::compile_failed,
              fmt::format("no policy of {} can run on {}: {}", to_string(problem), device.name(), last_reason));
}

}  // namespace hone
