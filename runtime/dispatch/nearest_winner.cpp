#include "runtime/dispatch/nearest_winner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <hone/error.h>
#include <hone/sdk/portfolio.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/search/candidates.h"
#include "runtime/search/model.h"

namespace hone {
namespace {

/// Neighbours that a tuning measures with all their geometries: more would eat the budget of one of 30 policies.
constexpr std::size_t kMostStarts = 6;

/// Extents from which a shape can be within kFarthestServed.
std::array<SizeRange, 3> box_around(const Extents& extents) {
  constexpr std::int64_t kFactor = 4;
  static_assert(kFarthestServed == 2, "2^kFarthestServed");
  std::array<SizeRange, 3> box;
  for (std::size_t i = 0; i < box.size(); ++i) {
    const std::int64_t extent = std::max<std::int64_t>(extents[i], 1);
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    box[i] = {.first = extents[i] <= kFactor ? 0 : extent / kFactor,
              .last = extent > kMost / kFactor ? kMost : extent * kFactor};
  }
  return box;
}

/// A lender that the model expects to fall behind by more than this from its own shape to the asked one is no lender: a
/// single block that is the fastest for 2^16 elements is not for 2^18.
constexpr double kMostFallBehind = 1.5;

/// The model's time for a winner, as a multiple of its time for its own first choice.
double modelled_ratio(const DeviceFacts& facts, const Problem& problem, const Winner& winner) {
  const PolicyRanking ranking = rank_policies(facts, problem);
  if (ranking.policies.empty()) return 1;
  const double us = predict(facts, problem, winner.candidate, winner.resident_blocks).us();
  return std::max(1.0, us / ranking.policies.front().prediction.us());
}

bool falls_behind(const DeviceFacts& facts, const Problem& problem, const Winner& lender) {
  Problem lending = problem;
  lending.extents = lender.tuned_extents;
  return modelled_ratio(facts, problem, lender) > kMostFallBehind * modelled_ratio(facts, lending, lender);
}

bool share_a_winner(const Extents& a, const Extents& b) { return size_ranges(a) == size_ranges(b); }

}  // namespace

/// Tuned winners of shapes within kFarthestServed, the nearest first; those in memory before those in the files.
std::vector<NearestWinner::Neighbour> NearestWinner::neighbours_of(const Problem& problem) {
  std::vector<Neighbour> neighbours;
  const auto add = [&](const Winner& winner) {
    const double octaves = shape_distance(problem.extents, winner.tuned_extents);
    const bool is_known = std::any_of(neighbours.begin(), neighbours.end(), [&](const Neighbour& known) {
      return known.winner.candidate == winner.candidate && known.winner.tuned_extents == winner.tuned_extents;
    });
    if (octaves <= kFarthestServed && !is_known) neighbours.push_back({winner, octaves});
  };
  for (const Winner& winner : plans_.tuned_near(problem)) add(winner);
  for (const Winner& winner : core_.cache().find_near(problem, box_around(problem.extents))) add(winner);
  std::stable_sort(neighbours.begin(), neighbours.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.octaves < b.octaves; });
  return neighbours;
}

std::vector<Candidate> NearestWinner::starts_for(const Problem& problem) {
  std::vector<Candidate> starts;
  const auto add = [&](const Neighbour& neighbour) {
    if (std::find(starts.begin(), starts.end(), neighbour.winner.candidate) == starts.end())
      starts.push_back(neighbour.winner.candidate);
  };
  for (const Neighbour& neighbour : neighbours_of(problem))
    if (starts.size() < kMostStarts && !share_a_winner(neighbour.winner.tuned_extents, problem.extents)) add(neighbour);
  const bool is_stream = problem.launch_context == LaunchContext::stream;
  for (const Neighbour& other :
       neighbours_of(in_context(problem, is_stream ? LaunchContext::graph : LaunchContext::stream)))
    if (share_a_winner(other.winner.tuned_extents, problem.extents)) add(other);
  return starts;
}

Resolved NearestWinner::serve(const Problem& problem, const std::optional<CachedWinner>& untuned, bool capturing) {
  const MissPolicy on_miss = core_.options().on_miss;
  const bool may_lend = problem.launch_context == LaunchContext::graph && (capturing || on_miss != MissPolicy::error);
  if (may_lend)
    if (const Resolved lent = lend_stream_winner(problem); lent.plan) return lent;
  std::vector<Winner> lenders;
  if (on_miss != MissPolicy::error) lenders = lenders_for(problem);
  const bool is_stored = untuned && !lenders.empty() && lenders.front().candidate == untuned->winner.candidate;
  if (!is_stored)
    for (const Winner& lender : lenders)
      if (const LoadedPlan* plan = borrow(problem, lender, capturing)) return {plan, ChoiceSource::nearest};
  if (untuned)
    if (const LoadedPlan* plan = lookup_.load(problem, *untuned, capturing)) return {plan, ChoiceSource::cache};
  return {};
}

/// No plan where nothing was tuned for the stream.
Resolved NearestWinner::lend_stream_winner(const Problem& graph_problem) {
  const Problem stream_problem = in_context(graph_problem, LaunchContext::stream);
  Resolved lender{.plan = plans_.find(stream_problem)};
  if (!lender.plan || !lender.plan->winner.tuned)
    lender = {lookup_.find(stream_problem, false).plan, ChoiceSource::cache};
  if (!lender.plan) return {};
  return {&plans_.lend_to_graph(graph_problem, *lender.plan), lender.source};
}

/// Winners of near shapes that may be launched for this one and do not fall behind, the nearest first; of the stream's
/// where a graph has none.
std::vector<Winner> NearestWinner::lenders_for(const Problem& problem) {
  std::vector<Neighbour> neighbours = neighbours_of(problem);
  if (neighbours.empty() && problem.launch_context == LaunchContext::graph)
    neighbours = neighbours_of(in_context(problem, LaunchContext::stream));
  std::vector<Winner> lenders;
  for (Neighbour& neighbour : neighbours) {
    const bool is_other = !share_a_winner(neighbour.winner.tuned_extents, problem.extents);
    const Candidate& lent = neighbour.winner.candidate;
    const bool is_lender = is_other && may_launch(core_.facts(), problem, lent) &&
                           problem.family->prune(problem, lent.policy, core_.facts()).empty() &&
                           !falls_behind(core_.facts(), problem, neighbour.winner);
    if (is_lender) lenders.push_back(std::move(neighbour.winner));
  }
  return lenders;
}

/// Serves `problem` with another shape's winner, stored as untuned; nullptr when it does not compile or run here.
const LoadedPlan* NearestWinner::borrow(const Problem& problem, const Winner& lender, bool capturing) {
  const Unit unit = unit_of(problem, lender.candidate.policy);
  CompiledCode code;
  try {
    const std::shared_ptr<const Binary> binary = code_for(problem, lender, unit);
    if (!binary || binary->architecture != core_.facts().architecture) return nullptr;
    code = load_policy(*core_.device(), problem, lender.candidate.policy, unit, binary);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    return nullptr;  // there is no compiler, or the code does not load: the next choice will say so
  }
  if (code.compiled.resident_blocks == 0) return nullptr;
  Winner winner = make_winner(problem,
                              {.candidate = lender.candidate,
                               .resources = code.compiled.resources,
                               .resident_blocks = code.compiled.resident_blocks},
                              false);
  winner.launch_context = lender.launch_context;
  winner.tuned_extents = lender.tuned_extents;
  const LoadedPlan& plan = plans_.install(problem, winner, code.module, capturing);
  core_.cache().publish(problem, winner, *code.binary, nullptr);
  core_.cache().note_miss(problem, winner.sizes, false);
  core_.count(&SessionCounters::nearest);
  return &plan;
}

/// The code that was stored for the lender where that is the same code, else the unit, compiled.
std::shared_ptr<const Binary> NearestWinner::code_for(const Problem& problem, const Winner& lender, const Unit& unit) {
  Problem lending = in_context(problem, lender.launch_context);
  lending.extents = lender.tuned_extents;
  const Unit lent = unit_of(lending, lender.candidate.policy);
  if (lent.has_code_of(unit)) {
    std::optional<CachedWinner> cached = core_.cache().find(lending);
    if (cached && cached->code && cached->code->unit_digest == unit_digest(unit))
      return std::make_shared<const Binary>(std::move(cached->code->binary));
  }
  return core_.memo().compile(*core_.device(), std::span(&unit, 1)).front().binary;
}

}  // namespace hone
