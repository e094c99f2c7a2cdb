#include <algorithm>
#include <memory>
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

/// Choices that may be wrong before a call fails: each is another run of the compiler, and if these are wrong, it is
/// hardly because of their policies.
constexpr int kMostWrong = 3;

/// So many policies are compiled in vain, since no block is resident or they are not worth measuring, before the search
/// ends. After half of them those with the smallest blocks are next, which are the likeliest to be resident.
constexpr int kMostInVain = 32;

ModelChoice choice_of(const Trial& trial, const CompiledCode& code) {
  ModelChoice choice{.trial = trial, .binary = code.binary, .module = code.module};
  choice.trial.is_default = true;
  return choice;
}

void put_smallest_first(const Problem& problem, std::span<RankedPolicy> policies) {
  std::ranges::stable_sort(policies, {}, [&](const RankedPolicy& ranked) {
    return problem.family->shape(problem, ranked.policy).block_threads;
  });
}

PolicyRanking ranking_of(const Device& device, const Problem& problem, Cooperation cooperation) {
  const auto ranked = [&](Pruning pruning) {
    PolicyRanking ranking = rank_policies(device.facts(), problem, pruning);
    if (cooperation == Cooperation::refused)
      std::erase_if(ranking.policies, [&](const RankedPolicy& each) {
        return problem.family->shape(problem, each.policy).cooperative;
      });
    return ranking;
  };
  PolicyRanking ranking = ranked(Pruning::on);
  return ranking.policies.empty() ? ranked(Pruning::off) : ranking;
}

/// The choice that a compiled policy offers.
struct Offer {
  std::optional<ModelChoice> choice = {};
  bool is_pruned = false;
  std::string reason = {};  ///< why there is no choice, or why it is pruned
};

Offer offer_of(Device& device, const Problem& problem, const Policy& policy, const Unit& unit,
               std::shared_ptr<const Binary> binary, std::size_t workspace_bytes, BinaryMemo& memo) {
  try {
    const CompiledCode code = load_policy(device, problem, policy, unit, std::move(binary), &memo);
    const auto list_with = [&](Pruning pruning) {
      return list_candidates(device.facts(), problem, std::span(&code.compiled, 1), workspace_bytes, pruning);
    };
    const CandidateList list = list_with(Pruning::on);
    if (!list.candidates.empty()) return {.choice = choice_of(list.candidates.front(), code)};
    Offer offer{.is_pruned = true, .reason = list.rejected.front().reason.text()};
    const CandidateList all = list_with(Pruning::off);
    if (!all.candidates.empty()) offer.choice = choice_of(all.candidates.front(), code);
    return offer;
  } catch (const Error& error) {
    // Arguments that do not fit the kernel fit it in no policy.
    if (error.code() == ErrorCode::device_lost || error.code() == ErrorCode::invalid_argument) throw;
    return {.reason = error.what()};
  }
}

ModelChoice choose_among(Device& device, const Problem& problem, std::size_t workspace_bytes, BinaryMemo& memo,
                         const ChoiceCheck& check, Cooperation cooperation) {
  PolicyRanking ranking = ranking_of(device, problem, cooperation);
  std::optional<ModelChoice> best, pruned;  // an opinion fails no call
  std::string last_reason, fault;
  int choices = 0, wrong = 0, in_vain = 0;
  const auto passes = [&](const ModelChoice& choice) {
    fault = check ? check(choice) : "";
    if (fault.empty()) return true;
    fault = fmt::format("{}: {}", problem.family->space().to_string(choice.trial.candidate.policy), fault);
    return ++wrong, false;
  };
  for (std::size_t i = 0; i < ranking.policies.size(); ++i) {
    const RankedPolicy& ranked = ranking.policies[i];
    if (wrong == kMostWrong || (!best && in_vain == kMostInVain)) break;
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
    Offer offer = offer_of(device, problem, ranked.policy, unit, outcome.binary, workspace_bytes, memo);
    if (!offer.reason.empty()) {
      last_reason = offer.reason;
      if (++in_vain == kMostInVain / 2 && !best)
        put_smallest_first(problem, std::span(ranking.policies).subspan(i + 1));
    }
    if (!offer.choice) continue;
    if (offer.is_pruned) {
      if (!pruned) pruned = *std::move(offer.choice);
      continue;
    }
    ++choices;
    const bool is_better = !best || offer.choice->trial.predicted_us < best->trial.predicted_us;
    if (is_better && passes(*offer.choice)) best = *std::move(offer.choice);
  }
  if (best) return *std::move(best);
  if (wrong < kMostWrong && pruned && passes(*pruned)) return *std::move(pruned);
  if (wrong > 0)
    throw Error(ErrorCode::device_failed, fmt::format("the first choices for {} do not work on {}; {}",
                                                      to_string(problem), device.name(), fault));
  if (last_reason.empty())
    last_reason = ranking.rejected.empty()
                      ? "its space is empty"
                      : std::ranges::max_element(ranking.rejected, {}, &Trial::policies)->reason.text();
  throw Error(ErrorCode::compile_failed,
              fmt::format("no policy of {} {} {}: {}", to_string(problem),
                          in_vain == kMostInVain ? "that was tried can run on" : "can run on", device.name(),
                          last_reason));
}

}  // namespace

ModelChoice choose_by_model(Device& device, const Problem& problem, std::size_t workspace_bytes, BinaryMemo& memo,
                            const ChoiceCheck& check, Cooperation cooperation) {
  require_accepted(problem);
  try {
    return choose_among(device, problem, workspace_bytes, memo, check, cooperation);
  } catch (const NotResident& refused) {
    try {
      return choose_among(device, problem, workspace_bytes, memo, check, Cooperation::refused);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) throw;
      throw without_others(problem, refused, error);
    }
  }
}

Error without_others(const Problem& problem, const NotResident& refused, const Error& others) {
  return {refused.code(),
          fmt::format("{}; and no policy whose blocks do not wait for each other serves {}: {}; give the process all "
                      "SMs of the device (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, green contexts)",
                      refused.what(), to_string(problem), others.what())};
}

}  // namespace hone
