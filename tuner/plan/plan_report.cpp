#include "tuner/plan/plan_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>

#include <hone/kernel_family.h>

#include "tuner/problems/problem_text.h"
#include "tuner/text/quantities.h"
#include "tuner/text/reasons.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;

std::string policy_text(const Problem& problem, const Policy& policy) {
  return problem.family->space().to_string(policy);
}

int block_threads(const PlannedProblem& planned, const Candidate& candidate) {
  return planned.problem.family->shape(planned.problem, candidate.policy).block_threads;
}

/// The trial of the predicted winner; nullptr where its policy is not among those that were compiled.
const Trial* trial_of_winner(const PlannedProblem& planned) {
  const auto& candidates = planned.plan.candidates;
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Trial& trial) { return trial.candidate == planned.winner.candidate; });
  return found == candidates.end() ? nullptr : &*found;
}

std::vector<ReasonCount> reasons_of(const CandidatePlan& plan) {
  ReasonCounts counts;
  for (const Trial& trial : plan.rejected) counts.add(name(trial.verdict), trial.reason, trial.policies);
  return counts.most_frequent_first();
}

Json trial_json(const PlannedProblem& planned, const Trial& trial) {
  return {{"policy", policy_text(planned.problem, trial.candidate.policy)},
          {"max_blocks", trial.candidate.geometry.max_blocks},
          {"block_threads", block_threads(planned, trial.candidate)},
          {"registers", trial.resources.registers},
          {"static_smem_bytes", trial.resources.static_smem_bytes},
          {"local_bytes", trial.resources.local_bytes},
          {"max_threads_per_block", trial.resources.max_threads_per_block},
          {"resident_blocks", trial.resident_blocks},
          {"bytes_in_flight_per_sm", trial.bytes_in_flight_per_sm},
          {"predicted_us", trial.predicted_us},
          {"is_predicted_winner", trial.candidate == planned.winner.candidate}};
}

}  // namespace

void print_candidates(const PlannedProblem& planned, const DeviceFacts& facts, const Context& context) {
  const CandidatePlan& plan = planned.plan;
  context.out << fmt::format("{}: {} of {} compiled, {}\n\n", problem_label(planned.problem), plan.compiled,
                             count_text(static_cast<std::int64_t>(plan.ranked), "promising policy"),
                             count_text(static_cast<std::int64_t>(plan.candidates.size()), "candidate"));
  Table table({{"candidate"},
               {"blocks", Align::right},
               {"resident", Align::right},
               {"occupancy", Align::right, 2},
               {"registers", Align::right, 3},
               {"shared", Align::right, 5},
               {"local", Align::right, 6},
               {"in flight/SM", Align::right, 1},
               {"predicted µs", Align::right},
               {""}});
  for (const Trial& trial : plan.candidates) {
    const double share =
        occupancy(trial.resident_blocks, block_threads(planned, trial.candidate), facts.max_threads_per_sm);
    table.add_row({short_policy(policy_text(planned.problem, trial.candidate.policy)),
                   blocks_cell(trial.candidate.geometry.max_blocks), fmt::format("{}", trial.resident_blocks),
                   percent_text(share), fmt::format("{}", trial.resources.registers),
                   fmt::format("{}", trial.resources.static_smem_bytes), fmt::format("{}", trial.resources.local_bytes),
                   format_bytes(trial.bytes_in_flight_per_sm), us_text(trial.predicted_us),
                   trial.candidate == planned.winner.candidate ? "predicted winner" : ""});
  }
  if (!plan.candidates.empty()) table.print(context.out, context.environment.out_columns());
  if (!trial_of_winner(planned))
    context.out << fmt::format("{}The predicted winner is {} in {}, which is none of these candidates; "
                               "--policies N compiles more\n",
                               plan.candidates.empty() ? "" : "\n",
                               short_policy(policy_text(planned.problem, planned.winner.candidate.policy)),
                               blocks_text(planned.winner.candidate.geometry.max_blocks));
  const std::vector<ReasonCount> reasons = reasons_of(plan);
  if (reasons.empty()) return;
  context.out << "\nNo candidates\n";
  Table why({{"count", Align::right}, {"why"}});
  for (const ReasonCount& reason : reasons)
    why.add_row({fmt::format("{}", reason.count), fmt::format("{}: {}", reason.verdict, reason.text())});
  why.print(context.out, 0, 2);
}

void print_winners(const std::vector<PlannedProblem>& all, const DeviceFacts& facts, const Context& context) {
  Table table({{"problem"},
               {"predicted winner"},
               {"blocks", Align::right, 1},
               {"resident", Align::right, 2},
               {"occupancy", Align::right, 3},
               {"predicted µs", Align::right},
               {"candidates", Align::right, 4}});
  for (const PlannedProblem& planned : all) {
    const Candidate& candidate = planned.winner.candidate;
    const Trial* const trial = trial_of_winner(planned);
    const double share =
        occupancy(planned.winner.resident_blocks, block_threads(planned, candidate), facts.max_threads_per_sm);
    table.add_row({problem_label(planned.problem), short_policy(policy_text(planned.problem, candidate.policy)),
                   blocks_cell(candidate.geometry.max_blocks), fmt::format("{}", planned.winner.resident_blocks),
                   percent_text(share), us_text(trial ? trial->predicted_us : 0),
                   fmt::format("{}", planned.plan.candidates.size())});
  }
  table.print(context.out, context.environment.out_columns());
}

Json to_json(const PlannedProblem& planned) {
  Json json{{"problem", problem_label(planned.problem)},
            {"policies", planned.plan.ranked},
            {"compiled", planned.plan.compiled},
            {"predicted_winner",
             {{"policy", policy_text(planned.problem, planned.winner.candidate.policy)},
              {"max_blocks", planned.winner.candidate.geometry.max_blocks}}},
            {"candidates", Json::array()},
            {"rejected", Json::array()}};
  for (const Trial& trial : planned.plan.candidates) json["candidates"].push_back(trial_json(planned, trial));
  for (const ReasonCount& reason : reasons_of(planned.plan))
    json["rejected"].push_back({{"count", reason.count}, {"verdict", reason.verdict}, {"reason", reason.text()}});
  return json;
}

}  // namespace hone::tuner
