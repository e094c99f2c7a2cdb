#include "runtime/dispatch/nearest_winner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <hone/error.h>
#include <hone/sdk/portfolio.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/search/model.h"

namespace hone {
namespace {

/// Neighbours that a tuning measures with all their geometries: more would eat the budget of one of 30 policies.
constexpr std::size_t kMostStarts = 6;

/// Lenders that the model may expect to fall behind before the others, which are further away, are not asked any more.
constexpr std::size_t kMostBehind = 4;

/// The extents at which a lender may have been measured: a saturated one at any that are smaller.
std::array<SizeRange, 3> box_around(const Extents& extents) {
  constexpr std::int64_t kFactor = 4;
  static_assert(kFarthestServed == 2, "2^kFarthestServed");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::array<SizeRange, 3> box;
  for (std::size_t i = 0; i < box.size(); ++i)
    box[i].last = extents[i] > kMost / kFactor ? kMost : std::max<std::int64_t>(extents[i], 1) * kFactor;
  return box;
}

/// Returns the time that the model expects of the borrower's compiled code.
double modelled_us(const LoanTerms& terms, const CompiledPolicy& compiled) {
  const Problem& problem = terms.borrower;
  return predict(terms.facts, shape_of(problem, compiled), problem.family->bytes_moved(problem),
                 compiled.resident_blocks, lent_candidate(terms).geometry, problem.launch_context)
      .us();
}

bool share_a_winner(const Extents& a, const Extents& b) { return size_ranges(a) == size_ranges(b); }

}  // namespace

std::vector<Lender> NearestWinner::stored_lenders(std::span<const Problem> problems, cache::Devices devices) {
  return core_.cache().find_lenders(problems, box_around(problems.front().extents), devices);
}

/// The tuned winners of these problems in any alignment, launch context and size, in memory before those in the files.
std::vector<Lender> NearestWinner::known_lenders(std::span<const Problem> problems) {
  if (problems.empty()) return {};
  std::vector<Lender> lenders = plans_.tuned_winners(problems, box_around(problems.front().extents));
  for (Lender& lender : stored_lenders(problems, cache::Devices::same)) lenders.push_back(std::move(lender));
  return lenders;
}

std::vector<Candidate> NearestWinner::starts_for(const Problem& problem) {
  std::vector<Lender> relatives = known_lenders(std::span(&problem, 1));
  std::stable_sort(relatives.begin(), relatives.end(), [&](const Lender& a, const Lender& b) {
    return shape_distance(problem.extents, a.problem.extents) < shape_distance(problem.extents, b.problem.extents);
  });
  std::vector<Candidate> starts;
  const auto add = [&](const Lender& lender) {
    if (std::find(starts.begin(), starts.end(), lender.winner.candidate) == starts.end())
      starts.push_back(lender.winner.candidate);
  };
  const auto is_same_key = [&](const Lender& lender) {
    return lender.problem.alignment == problem.alignment && lender.problem.launch_context == problem.launch_context;
  };
  const auto is_same_size = [&](const Lender& lender) {
    return share_a_winner(lender.problem.extents, problem.extents);
  };
  for (const Lender& lender : relatives)
    if (starts.size() < kMostStarts && is_same_key(lender) && !is_same_size(lender) &&
        shape_distance(problem.extents, lender.problem.extents) <= kFarthestServed)
      add(lender);
  for (const Lender& lender : relatives)
    if ((!is_same_key(lender) || lender.other_source) && is_same_size(lender)) add(lender);
  return starts;
}

Resolved NearestWinner::serve(const Problem& problem, const std::optional<CachedWinner>& untuned, bool capturing) {
  const MissPolicy on_miss = core_.options().on_miss;
  std::vector<Lender> lenders;
  if (on_miss != MissPolicy::error) lenders = lenders_for(problem);
  const bool has_own_context = !lenders.empty() && lenders.front().winner.loan < Loan::context;
  if (problem.launch_context == LaunchContext::graph && !has_own_context && (capturing || on_miss != MissPolicy::error))
    if (const Resolved lent = lend_stream_winner(problem, capturing); lent.plan) return lent;
  std::size_t behind = 0;
  for (const Lender& lender : lenders) {
    // A prediction from trials is better than the winner of a similar device.
    if (untuned && untuned->winner.loan == Loan::transfer && lender.winner.loan == Loan::device) break;
    const LoanTerms terms{core_.facts(), problem, lender};
    if (falls_behind(terms)) {
      if (++behind == kMostBehind) break;
      continue;
    }
    const bool is_stored = untuned && untuned->winner.loan == lender.winner.loan &&
                           untuned->winner.candidate == lent_candidate(terms);
    if (is_stored) break;  // by an earlier session
    if (const LoadedPlan* plan = borrow(problem, lender, capturing)) return {plan, ChoiceSource::nearest};
  }
  if (untuned && on_miss != MissPolicy::error)
    if (const LoadedPlan* plan = lookup_.load(problem, *untuned, capturing)) return {plan, ChoiceSource::cache};
  return {};
}

/// The lenders of a problem, best first: its relatives; where none of them has its size, also other operations and
/// dtypes; where there is none at all, those of similar devices.
std::vector<Lender> NearestWinner::lenders_for(const Problem& problem) {
  std::vector<Lender> lenders = known_lenders(std::span(&problem, 1));
  order_lenders(core_.facts(), problem, lenders);
  if (!lenders.empty() && lenders.front().winner.loan < Loan::operation) return lenders;
  const std::vector<Problem> alike = problems_with_equal_work(problem);
  for (Lender& lender : known_lenders(std::span(alike).subspan(1))) lenders.push_back(std::move(lender));
  order_lenders(core_.facts(), problem, lenders);
  if (!lenders.empty()) return lenders;
  lenders = stored_lenders(std::span(&problem, 1), cache::Devices::similar);
  order_lenders(core_.facts(), problem, lenders);
  return lenders;
}

/// No plan where nothing was tuned for the stream, or the model expects that to fall behind. A call that is being
/// captured does not wait for a compiler where there is a winner already.
Resolved NearestWinner::lend_stream_winner(const Problem& graph_problem, bool capturing) {
  const Problem stream_problem = in_context(graph_problem, LaunchContext::stream);
  Resolved lender{.plan = plans_.find(stream_problem)};
  if (!lender.plan || !lender.plan->winner.tuned)
    lender = {lookup_.find(stream_problem, capturing).plan, ChoiceSource::cache};
  if (!lender.plan) return {};
  const Winner& winner = lender.plan->winner;
  if (core_.is_refused(graph_problem, winner.candidate.policy)) return {};
  if (!capturing && falls_behind({core_.facts(), graph_problem, {.winner = winner, .problem = stream_problem}}))
    return {};
  const LoadedPlan& lent = plans_.lend_to_graph(graph_problem, *lender.plan);
  core_.cache().note_miss(graph_problem, size_ranges(graph_problem.extents), false);
  return {&lent, lender.source};
}

/// Serves `problem` with another class's winner, stored as untuned; nullptr when it does not compile or run here, or
/// its code falls short.
const LoadedPlan* NearestWinner::borrow(const Problem& problem, const Lender& lender, bool capturing) {
  const LoanTerms terms{core_.facts(), problem, lender};
  const Candidate candidate = lent_candidate(terms);
  if (core_.is_refused(problem, candidate.policy)) return nullptr;
  const Unit unit = unit_of(problem, candidate.policy);
  CompiledCode code;
  try {
    const std::shared_ptr<const Binary> binary = code_for(lender, unit);
    if (!binary || binary->architecture != core_.facts().architecture) return nullptr;
    code = load_policy(*core_.device(), problem, candidate.policy, unit, binary, &core_.memo());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    return nullptr;  // there is no compiler, or the code does not load: the next choice will say so
  }
  if (code.compiled.resident_blocks == 0 || falls_short(terms, modelled_us(terms, code.compiled))) return nullptr;
  Winner winner = make_winner(problem,
                              {.candidate = candidate,
                               .resources = code.compiled.resources,
                               .resident_blocks = code.compiled.resident_blocks},
                              false);
  winner.launch_context = lender.problem.launch_context;
  winner.tuned_extents = lender.problem.extents;
  winner.loan = lender.winner.loan;
  winner.lender = to_string(lender.problem);
  if (lender.device) winner.lender += " on " + lender.device->name;
  if (!lender.winner.shipped.empty()) winner.lender += ", shipped: " + lender.winner.shipped;
  const LoadedPlan& plan = plans_.install(problem, winner, code.module, capturing);
  core_.cache().publish(problem, winner, *code.binary, nullptr);
  core_.cache().note_miss(problem, winner.sizes, false);
  core_.count(&SessionCounters::nearest);
  return &plan;
}

/// The code that was stored for the lender where that is the same code, else the unit, compiled.
std::shared_ptr<const Binary> NearestWinner::code_for(const Lender& lender, const Unit& unit) {
  if (!lender.device && unit_of(lender.problem, lender.winner.candidate.policy).has_code_of(unit)) {
    std::optional<CachedWinner> cached = core_.cache().find(lender.problem);
    if (cached && cached->code && cached->code->unit_digest == unit_digest(unit))
      return std::make_shared<const Binary>(std::move(cached->code->binary));
  }
  return core_.memo().compile(*core_.device(), std::span(&unit, 1)).front().binary;
}

}  // namespace hone
