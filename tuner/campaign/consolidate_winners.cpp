#include "tuner/campaign/consolidate_winners.h"

#include <fmt/core.h>

#include <hone/error.h>
#include <hone/kernel_family.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "cache/store.h"
#include "tuner/campaign/measure_sweep.h"
#include "tuner/campaign/runners_up.h"
#include "tuner/campaign/size_sweep.h"
#include "tuner/problems/stored_trials.h"
#include "tuner/campaign/sweep_choice.h"

namespace hone::tuner {
namespace {

/// Comparing winners may take this share of the time that tuning the problems took: it makes winners few, and seldom
/// faster. Without a limit, on two H100s it took as long as tuning (a standard campaign, CUDA 13.0, 2026-11-25).
constexpr double kShareOfTuning = 0.3;

/// A winner that is slower than a problem's own by this share more than may be lost is not measured there again.
constexpr double kClearlySlower = 0.05;

/// Looks winners up, has them measured, and stores what sweep_choice.h chooses.
class Consolidation {
 public:
  Consolidation(Session& session, const ConsolidateRequest& request, const WorkHooks& hooks)
      : session_(session),
        request_(request),
        hooks_(hooks),
        store_(session.options().cache_path),
        measurer_(session, request, hooks),
        axis_(only_differing_axis(request.problems)),
        is_newly_tuned_(std::find(request.may_change.begin(), request.may_change.end(), true) !=
                        request.may_change.end()),
        runners_up_(store_, session.device()->facts(), request.problems, tuned_winners_) {}

  ConsolidatedAnswer run() {
    result_.sweep.first = request_.problems.front();
    result_.sweep.sizes = request_.problems.size();
    list_all();
    if (!may_anything_change()) return std::move(result_);
    for (const Problem& problem : request_.problems) winners_.push_back(session_.prepare(problem).winner->candidate);
    tuned_winners_ = winners_;
    std::vector<Candidate> candidates;
    for (const Candidate& winner : winners_) add_candidate(winner, candidates);
    const std::size_t different = candidates.size();
    result_.sweep.winners_before = result_.sweep.winners = different;
    if (axis_) list_runners_up(candidates);
    if (candidates.size() > 1) {
      list_slow(candidates);
      SweepComparison comparison(rows_.size(), std::move(candidates), different);
      if (measurer_.measure(rows_, winners_, kShareOfTuning * tuning_ms(), comparison)) assign(comparison);
    }
    if (!is_stopped()) serve_between();
    result_.sweep.measure_ms = measurer_.spent_ms();
    return std::move(result_);
  }

 private:
  bool is_stopped() const { return hooks_.stop.stop_requested(); }

  void list_all() {
    SizeSweep sweep = list_sweep(request_.problems, request_.may_change, axis_, [&](const Problem& problem) {
      // Asking for a class loads its code: of a sweep that was consolidated before, one is enough.
      if (!is_newly_tuned_ && was_consolidated_) return false;
      if (!refusal_of(problem).empty()) return false;
      const CampaignItem found = look_up(session_, problem);
      was_consolidated_ = was_consolidated_ || found.measured_problem.extents != problem.extents;
      return found.outcome != Outcome::kept;
    });
    rows_ = std::move(sweep.compared);
    between_ = std::move(sweep.between);
  }

  /// A sweep that was tuned earlier, and serves nothing between its sizes, was interrupted before its winners were
  /// consolidated: now they are.
  bool may_anything_change() {
    if (is_newly_tuned_) return true;
    const bool serves_nothing_else = !was_consolidated_ && rows_.size() + between_.size() > request_.problems.size();
    if (serves_nothing_else)
      for (SweepRow& row : rows_) row.may_change = true;
    return serves_nothing_else;
  }

  /// Adds the runners-up of the tuned problems next to each row, which may be the best there and nowhere else: between
  /// two of them, and at a near one whose own search has missed them.
  void list_runners_up(std::vector<Candidate>& candidates) {
    const auto may_have_missed = [&](const SweepRow& row, const SweepRow& other, const Candidate& candidate) {
      return shape_distance(row.problem.extents, other.problem.extents) <= kFarthestServed &&
             !runners_up_.ratio(row.nearest_winner, candidate);
    };
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (const std::size_t tuned : tuned_beside(rows_, row)) {
        const std::size_t winner = rows_[tuned].nearest_winner;
        for (const Candidate& candidate : runners_up_.of(winner)) {
          if (rows_[row].is_tuned && !may_have_missed(rows_[row], rows_[tuned], candidate)) continue;
          rows_[row].runners_up.push_back({candidate, winner});
          add_candidate(candidate, candidates);
        }
      }
    }
  }

  double tuning_ms() {
    double all_ms = 0;
    for (std::size_t problem = 0; problem < request_.problems.size(); ++problem)
      all_ms += runners_up_.tuning_ms(problem);
    return all_ms;
  }

  /// Lists what is not compared at a row: what is clearly slower there by the problem's own trials, and what the family
  /// would prune, which may take thousands of times as long and all of the others' time.
  void list_slow(const std::vector<Candidate>& candidates) {
    const double clearly_slower = 1 + request_.most_regret + kClearlySlower;
    for (SweepRow& row : rows_) {
      for (const Candidate& candidate : candidates) {
        if (row.is_tuned && candidate == tuned_winners_[row.nearest_winner]) continue;
        const std::optional<double> known =
            row.is_tuned ? runners_up_.ratio(row.nearest_winner, candidate) : std::nullopt;
        if (known && *known > clearly_slower)
          row.slow.push_back({candidate, std::isfinite(*known) ? *known : 0});
        else if (!known && is_pruned(row.problem, candidate))
          row.slow.push_back({candidate, 0});
      }
    }
  }

  bool is_pruned(const Problem& problem, const Candidate& candidate) const {
    const DeviceFacts& facts = session_.device()->facts();
    return !problem.family->is_valid(problem, candidate.policy, facts).empty() ||
           !problem.family->prune(problem, candidate.policy, facts).empty();
  }

  void assign(const SweepComparison& comparison) {
    const SweepChoice choice = choose_winners(comparison, rows_, axis_, request_.most_regret);
    result_.sweep.winners = choice.winners;
    result_.sweep.worst_regret = choice.worst_regret;
    result_.sweep.mean_regret = choice.mean_regret;
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      SweepRow& row = rows_[index];
      if (choice.candidate_of[index] == Cover::kNone) continue;
      const Candidate& chosen = comparison.candidates()[choice.candidate_of[index]];
      if (!row.is_tuned) {
        row.chosen = chosen;
        row.nearest_winner = nearest_winner(row, request_.problems, tuned_winners_);
      } else if (chosen != winners_[row.nearest_winner]) {
        change(index, chosen, choice, comparison);
      }
    }
  }

  /// The chosen one serves this row, a tuned one, from now on; the trials say so.
  void change(std::size_t index, const Candidate& chosen, const SweepChoice& choice,
              const SweepComparison& comparison) {
    const SweepRow& row = rows_[index];
    std::optional<Tuning> tuning = stored_tuning(store_, session_.device()->facts(), row.problem);
    if (!tuning || !tuning->winner) return;
    Candidate& winner = winners_[row.nearest_winner];
    const auto time_of = [&](const Candidate& candidate) {
      const std::optional<std::size_t> trial = find_trial(row.comparison, candidate);
      return trial ? row.comparison.trials[*trial].median_us : 0;
    };
    const std::string why = fmt::format(
        "{:.2f} times the chosen one's time, and {:.2f} times the best one's{}: gave way to the one that "
        "serves {} alike",
        time_of(winner) / time_of(chosen), comparison.ratio(index, comparison.index_of(winner)),
        largest_corner(row.problem) ? " here or at the largest of its octaves" : "",
        served_text(rows_, index, choice, axis_));
    hand_over(*tuning, row.comparison, chosen, winner, why);
    if (!adopted(*tuning, std::span(&row.problem, 1))) return;  // a wrong result at this size: the former winner stays
    winner = chosen;
    result_.changed.push_back({.problem = row.problem,
                               .outcome = Outcome::tuned,
                               .candidate = chosen,
                               .median_us = time_of(chosen),
                               .measured_problem = row.problem});
  }

  /// The trials of a tuned problem are read once for all that it serves.
  void serve_between() {
    std::map<std::size_t, std::vector<const SweepRow*>> served;  // by the tuned problem's index
    for (const std::vector<SweepRow>* rows : {&rows_, &between_})
      for (const SweepRow& row : *rows)
        if (!row.is_tuned) served[row.nearest_winner].push_back(&row);
    for (const auto& [winner, rows] : served) {
      std::optional<Tuning> tuning = stored_tuning(store_, session_.device()->facts(), request_.problems[winner]);
      if (!tuning) continue;
      std::map<std::size_t, std::vector<Problem>> by_trial;
      for (const SweepRow* row : rows) {
        if (const std::optional<std::size_t> trial = trial_that_serves(*row, *tuning))
          by_trial[*trial].push_back(row->problem);
        if (is_stopped()) return;  // what was being verified may be right
      }
      for (const auto& [trial, problems] : by_trial) {
        tuning->winner = trial;
        if (filled(*tuning, problems)) continue;
        for (const Problem& problem : problems) filled(*tuning, std::span(&problem, 1));  // all but the one, then
      }
    }
  }

  /// False, and nothing has changed, when the tuning's winner cannot serve one of them.
  bool adopted(const Tuning& tuning, std::span<const Problem> problems) {
    tell_verifying(tuning.trials[*tuning.winner].candidate);
    try {
      session_.adopt(tuning, problems);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      return false;
    }
    return true;
  }

  /// Gives a sign of life before what may take seconds, and says who is to blame if it does not end.
  void tell_verifying(const Candidate& candidate) const {
    if (hooks_.on_run) hooks_.on_run(candidate);
    if (hooks_.on_progress) hooks_.on_progress({.phase = TuningPhase::verifying, .done = 0, .total = 1, .best_us = 0});
  }

  /// The same between tuned problems; counts what is served.
  bool filled(const Tuning& tuning, std::span<const Problem> problems) {
    if (!adopted(tuning, problems)) return false;
    result_.sweep.filled += problems.size();
    return true;
  }

  /// `tuning`: of the nearest winner; nullopt: what was chosen makes no sense at the row.
  std::optional<std::size_t> trial_that_serves(const SweepRow& row, const Tuning& tuning) {
    const Candidate& winner = winners_[row.nearest_winner];
    const bool is_chosen = row.chosen && is_right(row.problem, *row.chosen);
    for (const Candidate& candidate : {is_chosen ? *row.chosen : winner, winner}) {
      if (!row.problem.family->is_valid(row.problem, candidate.policy, session_.device()->facts()).empty()) continue;
      if (const std::optional<std::size_t> trial = find_trial(tuning, candidate)) return trial;
    }
    return {};
  }

  /// Winners were verified when they won; runners-up are verified where they first serve.
  bool is_right(const Problem& problem, const Candidate& candidate) {
    for (const std::vector<Candidate>* known : {&tuned_winners_, &verified_})
      if (std::find(known->begin(), known->end(), candidate) != known->end()) return true;
    if (!measurer_.compare_at(problem, {candidate}).winner) return false;
    verified_.push_back(candidate);
    return true;
  }

  Session& session_;
  const ConsolidateRequest& request_;
  const WorkHooks& hooks_;
  const cache::Store store_;
  SweepMeasurer measurer_;
  const std::optional<std::size_t> axis_;  ///< the only extent in which the problems differ
  const bool is_newly_tuned_;              ///< one of the problems at least
  bool was_consolidated_ = false;          ///< winners of the problems serve classes between them already
  std::vector<Candidate> tuned_winners_;   ///< of the problems, as they were found
  RunnersUp runners_up_;                   ///< of these
  std::vector<Candidate> winners_;         ///< of the problems, now
  std::vector<SweepRow> rows_;             ///< what candidates are chosen for, ascending along axis_
  std::vector<SweepRow> between_;          ///< what else they serve
  std::vector<Candidate> verified_;        ///< runners-up that were right
  ConsolidatedAnswer result_;
};

}  // namespace

ConsolidatedAnswer consolidate_winners(Session& session, const ConsolidateRequest& request, const WorkHooks& hooks) {
  const auto failed = [&](const char* what) {
    return ConsolidatedAnswer{
        .sweep = {.first = request.problems.front(), .sizes = request.problems.size(), .failure = what}, .changed = {}};
  };
  try {
    return Consolidation(session, request, hooks).run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    return failed(error.what());
  } catch (const cache::StoreError& error) {
    return failed(error.what());
  }
}

}  // namespace hone::tuner
