#include "runtime/dispatch/winner_checks.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include <hone/kernel_family.h>

namespace hone {

Winner make_winner(const Problem& problem, const Trial& trial, bool tuned) {
  return {.candidate = trial.candidate,
          .resources = trial.resources,
          .resident_blocks = trial.resident_blocks,
          .tuned = tuned,
          .median_us = tuned ? trial.median_us : 0,
          .spread_us = tuned ? trial.spread_us : 0,
          .launch_context = problem.launch_context,
          .tuned_extents = problem.extents,
          .sizes = size_ranges(problem.extents)};
}

std::string call_text(const Problem& problem, const Winner& winner) {
  const std::int64_t blocks = winner.candidate.geometry.max_blocks;
  return fmt::format("call {}: {} in {}", to_string(problem),
                     problem.family->space().to_string(winner.candidate.policy),
                     winner.candidate.geometry.is_block_per_tile() ? "a block for every tile"
                                                                   : fmt::format("at most {} blocks", blocks));
}

Reason launch_fault(const DeviceFacts& facts, const ProblemClass& problem_class, const Candidate& candidate) {
  const KernelFamily& family = problem_class.family();
  if (const Reason reason = family.is_valid(problem_class, candidate.policy, facts); !reason.empty()) return reason;
  const std::int64_t blocks = candidate.geometry.max_blocks;
  const WorkShape shape = family.shape(problem_class.typical(), candidate.policy);
  if (shape.one_block && blocks != shape.cluster_blocks)
    return fmt::format("it has {} blocks, and {} is launched as {}", blocks,
                       family.space().to_string(candidate.policy), shape.cluster_blocks);
  if (shape.cooperative && blocks != facts.sm_count)
    return fmt::format("it has {} blocks, and {} is launched as one on each of {} SMs", blocks,
                       family.space().to_string(candidate.policy), facts.sm_count);
  if (blocks > Geometry::kMostBlocks)
    return fmt::format("it has {} blocks, and a grid has at most {}", blocks, Geometry::kMostBlocks);
  const std::size_t bytes = family.workspace_bytes(problem_class, candidate);
  if (bytes > kWorkspaceBytes)
    return {ReasonCode::workspace, {static_cast<double>(bytes), static_cast<double>(kWorkspaceBytes)}};
  return {};
}

bool may_launch(const DeviceFacts& facts, const ProblemClass& problem_class, const Candidate& candidate) {
  return launch_fault(facts, problem_class, candidate).empty();
}

}  // namespace hone
