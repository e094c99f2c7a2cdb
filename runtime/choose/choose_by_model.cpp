#include <fmt/format.h>

#include <hone/error.h>

#include "runtime/choose/choose.h"
#include "runtime/choose/compiled.h"
#include "runtime/search/candidates.h"

namespace hone {

void require_accepted(const Problem& problem) {
  const std::string refusal = problem.family->refuse(problem);
  if (!refusal.empty()) throw Error(ErrorCode::invalid_argument, refusal);
}

ModelChoice choose_by_model(Device& device, const Problem& problem, std::size_t workspace_bytes, BinaryMemo& memo) {
  require_accepted(problem);
  const VariantRanking ranking = rank_variants(device.facts(), problem);
  std::string last_reason = ranking.rejected.empty() ? "its space is empty" : ranking.rejected.back().reason;
  for (const RankedVariant& ranked : ranking.variants) {
    const Unit unit = unit_of(problem, ranked.variant);
    const CompileOutcome outcome = memo.compile(device, std::span(&unit, 1)).front();
    if (!outcome.binary) {
      last_reason = outcome.error;
      continue;
    }
    CandidateList list;
    try {
      const CompiledCode code = load_variant(device, problem, ranked.variant, unit, outcome.binary);
      list = list_candidates(device.facts(), problem, std::span(&code.compiled, 1), workspace_bytes);
    } catch (const Error& error) {
      last_reason = error.what();
      continue;
    }
    if (!list.candidates.empty()) {
      ModelChoice choice{.trial = list.candidates.front(), .binary = outcome.binary};
      choice.trial.is_default = true;
      return choice;
    }
    last_reason = list.rejected.front().reason;
  }
  throw Error(ErrorCode::compile_failed, fmt::format("no variant of {} can run on {}: {}", to_string(problem),
                                                     device.name(), last_reason));
}

}  // namespace hone
