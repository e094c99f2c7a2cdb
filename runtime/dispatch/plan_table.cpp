#include "runtime/dispatch/plan_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <hone/sdk/portfolio.h>

#include "runtime/dispatch/winner_checks.h"

namespace hone {
namespace {

/// The longest pause before looking again for a winner that another process is tuning.
constexpr std::chrono::hours kLongestRetryPause(1);

}  // namespace

const LoadedPlan& PlanTable::insert(const Problem& problem, LoadedPlan plan) {
  if (!find(problem)) problems_.push_back(problem);
  return plans_.insert(ProblemKey(problem), std::move(plan));
}

const LoadedPlan& PlanTable::install(const Problem& problem, const Winner& winner, std::shared_ptr<const Module> module,
                                     bool capturing) {
  if (const LoadedPlan* const kept = find(problem); kept && is_pinned()) return *kept;
  LoadedPlan plan{.winner = winner,
                  .loaded = {winner.candidate, std::move(module)},
                  .needs_workspace = problem.family->workspace_bytes(problem, winner.candidate) > 0,
                  .is_provisional = !winner.tuned && replaces_untuned_ && capturing};
  const LoadedPlan& installed = insert(problem, std::move(plan));
  if (winner.tuned && problem.launch_context == LaunchContext::stream) {
    const Problem in_graph = in_context(problem, LaunchContext::graph);
    const LoadedPlan* known = find(in_graph);
    const bool has_own = known && known->winner.tuned && known->winner.launch_context == LaunchContext::graph;
    if (known && !has_own) lend_to_graph(in_graph, installed);
  }
  return installed;
}

const LoadedPlan& PlanTable::lend_to_graph(const Problem& graph_problem, const LoadedPlan& stream_plan) {
  if (const LoadedPlan* const kept = find(graph_problem); kept && is_pinned()) return *kept;
  LoadedPlan lent = stream_plan;
  lent.is_provisional = replaces_untuned_;
  return insert(graph_problem, std::move(lent));
}

const LoadedPlan& PlanTable::postpone(const Problem& problem, LoadedPlan plan, Clock::duration first_pause) {
  plan.is_provisional = true;
  plan.retry_pause = std::min<Clock::duration>(2 * plan.retry_pause, kLongestRetryPause);
  plan.retry_pause = std::max(plan.retry_pause, first_pause);
  plan.retry_at = Clock::now() + plan.retry_pause;
  return insert(problem, std::move(plan));
}

std::vector<Winner> PlanTable::tuned_near(const Problem& problem) const {
  std::vector<Winner> winners;
  // A shape within kFarthestServed may lie in a class one octave further. Lone extents alone have several in an octave.
  constexpr int kReach = kClassesPerOctave * (static_cast<int>(kFarthestServed) + 1);
  const std::array<int, 3> center = size_classes(problem.extents);
  std::array<int, 3> at{};
  for (at[0] = center[0] - kReach; at[0] <= center[0] + kReach; ++at[0])
    for (at[1] = center[1] - kReach; at[1] <= center[1] + kReach; at[1] += kClassesPerOctave)
      for (at[2] = center[2] - kReach; at[2] <= center[2] + kReach; at[2] += kClassesPerOctave) {
        const auto is_class = [](int each) { return each >= 0 && each < kLargestSizeClass; };
        if (!std::all_of(at.begin(), at.end(), is_class)) continue;
        Problem neighbour = problem;
        for (std::size_t i = 0; i < at.size(); ++i) neighbour.extents[i] = class_center(at[i]);
        if (size_classes(neighbour.extents) != at) continue;
        const LoadedPlan* plan = find(neighbour);
        if (plan && plan->winner.tuned && plan->winner.launch_context == problem.launch_context)
          winners.push_back(plan->winner);
      }
  return winners;
}

}  // namespace hone
