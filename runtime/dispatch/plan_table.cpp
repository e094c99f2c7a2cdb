#include "runtime/dispatch/plan_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/dispatch/winner_checks.h"

namespace hone {
namespace {

/// The longest pause before looking again for a winner that another process is tuning.
constexpr std::chrono::hours kLongestRetryPause(1);

/// The same key for all problems that differ in alignment, launch context and extents alone.
ProblemKey key_of_relatives(Problem problem) {
  problem.alignment = 1;
  problem.launch_context = LaunchContext::stream;
  problem.extents = {1, 1, 1};
  return ProblemKey(problem);
}

}  // namespace

const LoadedPlan& PlanTable::insert(const Problem& problem, LoadedPlan plan) {
  if (!find(problem)) {
    relatives_[key_of_relatives(problem)].push_back(problems_.size());
    problems_.push_back(problem);
  }
  return plans_.insert(ProblemKey(problem), std::move(plan));
}

LoadedPlan PlanTable::plan_of(const Problem& problem, const Winner& winner, std::shared_ptr<const Module> module) {
  return {.winner = winner,
          .loaded = {winner.candidate, std::move(module)},
          .buffers = problem.family->buffers(problem).size(),
          .needs_workspace = problem.family->workspace_bytes(problem, winner.candidate) > 0};
}

const LoadedPlan& PlanTable::install(const Problem& problem, const Winner& winner, std::shared_ptr<const Module> module,
                                     bool capturing) {
  if (const LoadedPlan* const kept = find(problem); kept && is_pinned()) return *kept;
  LoadedPlan plan = plan_of(problem, winner, std::move(module));
  plan.is_provisional = !winner.tuned && replaces_untuned_ && capturing;
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
  lent.winner.loan = Loan::context;
  lent.winner.lender = to_string(in_context(graph_problem, LaunchContext::stream));
  return insert(graph_problem, std::move(lent));
}

const LoadedPlan& PlanTable::postpone(const Problem& problem, LoadedPlan plan, Clock::duration first_pause) {
  plan.is_provisional = true;
  plan.retry_pause = std::min<Clock::duration>(2 * plan.retry_pause, kLongestRetryPause);
  plan.retry_pause = std::max(plan.retry_pause, first_pause);
  plan.retry_at = Clock::now() + plan.retry_pause;
  return insert(problem, std::move(plan));
}

std::vector<Lender> PlanTable::tuned_winners(std::span<const Problem> problems,
                                             const std::array<SizeRange, 3>& box) const {
  std::vector<Lender> winners;
  for (const Problem& problem : problems) {
    const auto relatives = relatives_.find(key_of_relatives(problem));
    if (relatives == relatives_.end()) continue;
    for (const std::size_t index : relatives->second) {
      const Problem& relative = problems_[index];
      const Winner& winner = find(relative)->winner;
      // A plan that was lent to a graph is listed as the stream's.
      if (!winner.tuned || winner.launch_context != relative.launch_context) continue;
      if (!is_within(winner.tuned_extents, box) && !is_within(problem.extents, winner.sizes)) continue;
      Lender& lender = winners.emplace_back(Lender{.winner = winner, .problem = relative});
      lender.problem.extents = winner.tuned_extents;
      lender.problem.pitches = {};
      lender.problem.scalars = {};
    }
  }
  return winners;
}

}  // namespace hone
