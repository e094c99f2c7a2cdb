#include "tuner/problems/stored_trials.h"

#include <hone/kernel_family.h>

#include <algorithm>

#include "cache/identity.h"
#include "tuner/problems/problem_text.h"

namespace hone::tuner {
namespace {

/// If several could be meant, this is the one with the largest id: ids grow with time.
std::optional<cache::StoredWinner> newest_winner(const cache::Store& store, const DeviceFacts& facts,
                                                 const Problem& problem) {
  std::optional<cache::StoredWinner> newest;
  const cache::DeviceRecord here{
      .kind = facts.kind, .name = {}, .architecture = facts.architecture, .identity = tuning_identity(facts)};
  const KernelFamily& family = *problem.family;
  for (const cache::StoredWinner& stored : store.winners(family.name(), family.operations()[problem.operation])) {
    const cache::DeviceRecord& device = stored.key.device;
    const bool is_meant = stored.winner.tuned && stored.winner.tuned_extents == problem.extents &&
                          cache::same_device(device, here) && is_described(problem, stored.key.problem) &&
                          stored.key.problem.objective == name(Objective::time);  // nothing else is consolidated
    if (is_meant && (!newest || stored.id > newest->id)) newest = stored;
  }
  return newest;
}

}  // namespace

std::optional<Trial> trial_of(const cache::TrialRecord& record, const Problem& problem) {
  const std::optional<Policy> policy = problem.family->space().parse(record.candidate.policy);
  const auto verdict = std::find(kVerdictNames.begin(), kVerdictNames.end(), record.verdict);
  if (!policy || verdict == kVerdictNames.end()) return std::nullopt;
  CountedReason why = CountedReason::parse(record.reason);
  return Trial{.candidate = {*policy, {.max_blocks = record.candidate.max_blocks}},
               .policies = why.policies,
               .resources = {.registers = record.candidate.registers,
                             .static_smem_bytes = record.candidate.static_smem_bytes,
                             .local_bytes = record.candidate.local_bytes,
                             .max_threads_per_block = record.candidate.max_threads_per_block},
               .resident_blocks = record.candidate.resident_blocks,
               .bytes_in_flight_per_sm = record.bytes_in_flight_per_sm,
               .predicted_us = record.predicted_us,
               .median_us = record.median_us,
               .spread_us = record.spread_us,
               .samples = record.samples,
               .sequence = record.sequence,
               .is_default = record.is_default,
               .verdict = static_cast<Verdict>(verdict - kVerdictNames.begin()),
               .reason = std::move(why.reason)};
}

std::optional<Tuning> stored_tuning(const cache::Store& store, const DeviceFacts& facts, const Problem& problem) {
  const std::optional<cache::StoredWinner> stored = newest_winner(store, facts, problem);
  if (!stored) return std::nullopt;
  const std::optional<cache::TuningRecord> record = store.tuning(stored->id);
  if (!record) return std::nullopt;
  Tuning tuning;
  tuning.problem = problem;
  tuning.compile_ms = record->compile_ms;
  tuning.measure_ms = record->measure_ms;
  tuning.budget_spent = record->budget_spent;
  for (const cache::TrialRecord& row : record->trials) {
    const std::optional<Trial> trial = trial_of(row, problem);
    if (!trial) continue;
    const bool is_winner = row.candidate.policy == stored->winner.candidate.policy &&
                           row.candidate.max_blocks == stored->winner.candidate.max_blocks;
    if (is_winner) tuning.winner = tuning.trials.size();
    tuning.trials.push_back(*trial);
  }
  return tuning;
}

}  // namespace hone::tuner
