#include "tuner/campaign/share_winners.h"

#include <fmt/core.h>

#include <hone/error.h>
#include <hone/sdk/portfolio.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "cache/store.h"
#include "tuner/campaign/line_rows.h"
#include "tuner/campaign/runners_up.h"
#include "tuner/campaign/stored_trials.h"
#include "tuner/campaign/tune_problem.h"
#include "tuner/median.h"
#include "tuner/quantities.h"

namespace hone::tuner {
namespace {

/// A winner that is further behind at both tuned sizes beside one between is not the fastest there; and where all
/// others are as fast as the fastest at both, nothing has to be measured between them.
constexpr double kMostBehindBeside = 1.15;
constexpr double kAsFast = 1.002;

class Sharing {
 public:
  Sharing(Session& session, const ShareRequest& request)
      : session_(session),
        request_(request),
        store_(session.options().cache_path),
        axis_(only_differing()),
        is_newly_tuned_(std::find(request.may_change.begin(), request.may_change.end(), true) !=
                        request.may_change.end()) {}

  ShareResult run() {
    result_.line.first = request_.problems.front();
    result_.line.sizes = request_.problems.size();
    list_all();
    if (!may_anything_change()) return std::move(result_);
    for (const Problem& problem : request_.problems) winners_.push_back(session_.prepare(problem).winner->candidate);
    tuned_winners_ = winners_;
    for (const Candidate& winner : winners_) add(winner, candidates_);
    result_.line.winners_before = result_.line.winners = line_winners_ = candidates_.size();
    if (axis_) list_runners_up();
    if (candidates_.size() > 1 && measure()) assign();
    if (!request_.stop.stop_requested()) serve_between();
    return std::move(result_);
  }

 private:
  void list_all() {
    LineRows rows = list_rows(request_.problems, request_.may_change, axis_, [&](const Problem& problem) {
      // Asking for a class loads its code: of a line that was shared before, one is enough.
      if (!is_newly_tuned_ && was_shared_) return false;
      if (!problem.family->refuse(problem).empty()) return false;
      const CampaignItem found = look_up(session_, problem);
      was_shared_ = was_shared_ || found.measured_problem.extents != problem.extents;
      return found.outcome != Outcome::kept;
    });
    rows_ = std::move(rows.chosen_for);
    between_ = std::move(rows.between);
  }

  /// A line that was tuned earlier, and serves nothing between its sizes, was interrupted before its winners were
  /// shared: now they are.
  bool may_anything_change() {
    if (is_newly_tuned_) return true;
    const bool serves_nothing_else = !was_shared_ && rows_.size() + between_.size() > request_.problems.size();
    if (serves_nothing_else)
      for (Row& row : rows_) row.may_change = true;
    return serves_nothing_else;
  }

  /// Those of the tuned problems next to each row, which may be the best there and nowhere else: between two of them,
  /// and at a near one whose own search has missed them.
  void list_runners_up() {
    RunnersUp runners_up(store_, session_.device()->facts(), request_.problems, tuned_winners_);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (const std::size_t tuned : tuned_beside(row)) {
        const std::size_t server = rows_[tuned].server;
        for (const Candidate& candidate : runners_up.of(server)) {
          if (rows_[row].is_tuned && !may_have_missed(row, tuned, candidate, runners_up)) continue;
          rows_[row].runners_up.push_back({candidate, server});
          add(candidate, candidates_);
        }
      }
    }
  }

  bool may_have_missed(std::size_t row, std::size_t other, const Candidate& candidate, RunnersUp& runners_up) const {
    return shape_distance(rows_[row].problem.extents, rows_[other].problem.extents) <= kFarthestServed &&
           !runners_up.is_known(rows_[row].server, candidate);
  }

  static void add(const Candidate& candidate, std::vector<Candidate>& to) {
    if (std::find(to.begin(), to.end(), candidate) == to.end()) to.push_back(candidate);
  }

  /// Times of all winners at the tuned rows that may change, and of those that are fast beside them at the rows
  /// between; false when it was stopped.
  bool measure() {
    ratios_ = {.shapes = rows_.size(),
               .candidates = candidates_.size(),
               .us = std::vector<double>(rows_.size() * candidates_.size())};
    for (const bool are_tuned : {true, false})
      for (std::size_t row = 0; row < rows_.size(); ++row)
        if (rows_[row].is_measured && rows_[row].is_tuned == are_tuned && !measure(row)) return false;
    for (std::size_t row = rows_.size(); row-- > 0;)  // the last one is tuned
      if (!rows_[row].is_measured) std::ranges::copy(ratios_at(row + 1), ratios_at(row).begin());
    return true;
  }

  bool measure(std::size_t row) {
    if (!rows_[row].may_change) {
      ratios_at(row)[index_of(winners_[rows_[row].server])] = 1;  // the only one that may serve
      return true;
    }
    std::vector<Candidate> compared(candidates_.begin(),
                                    candidates_.begin() + static_cast<std::ptrdiff_t>(line_winners_));
    if (!rows_[row].is_tuned) {
      std::erase_if(compared, [&](const Candidate& candidate) {
        return ratios_beside(row, candidate).first > kMostBehindBeside;
      });
      rows_[row].is_measured = std::any_of(compared.begin(), compared.end(), [&](const Candidate& candidate) {
        return ratios_beside(row, candidate).second > kAsFast;
      });
      if (!rows_[row].is_measured) return true;
    }
    for (const RunnerUp& runner_up : rows_[row].runners_up) add(runner_up.candidate, compared);
    if (request_.on_progress)
      request_.on_progress({.phase = TuningPhase::measuring,
                            .done = static_cast<int>(row),
                            .total = static_cast<int>(rows_.size()),
                            .best_us = 0});
    std::ranges::copy(compare(rows_[row], compared), ratios_at(row).begin());
    return !request_.stop.stop_requested();
  }

  std::span<double> ratios_at(std::size_t row) {
    return std::span(ratios_.us).subspan(row * ratios_.candidates, ratios_.candidates);
  }

  /// Infinity where it may not serve.
  double ratio_of(const Candidate& candidate, std::size_t row) const {
    const double ratio = ratios_.at(row, index_of(candidate));
    return ratio > 0 ? ratio : std::numeric_limits<double>::infinity();
  }

  /// The next smaller and larger tuned row; where there is none, the row itself.
  std::array<std::size_t, 2> tuned_beside(std::size_t row) const {
    std::size_t below = row, above = row;
    for (std::size_t other = row; other-- > 0 && below == row;)
      if (rows_[other].is_tuned) below = other;
    for (std::size_t other = row + 1; other < rows_.size() && above == row; ++other)
      if (rows_[other].is_tuned) above = other;
    return {below, above};
  }

  /// At the two tuned rows beside one between, the smaller one first.
  std::pair<double, double> ratios_beside(std::size_t row, const Candidate& candidate) const {
    const auto [below, above] = tuned_beside(row);
    return std::minmax({ratio_of(candidate, below), ratio_of(candidate, above)});
  }

  /// How many times as long as the fastest each candidate takes; 0: it may not serve. Boxes of whole octaves count what
  /// is worse, the row itself or the largest corner of its box; a row's own winner may serve it in any case.
  std::vector<double> compare(Row& row, const std::vector<Candidate>& compared) {
    std::vector<double> worst(candidates_.size());
    if (compared.size() == 1) {
      worst[index_of(compared.front())] = 1;
      return worst;
    }
    try {
      row.comparison = compare_at(row.problem, compared);
      worst = ratios(row.comparison);
      const std::optional<Problem> corner = largest_corner(row.problem);
      if (!corner || request_.stop.stop_requested()) return worst;
      const std::vector<double> there = ratios(compare_at(*corner, compared));
      const std::size_t own = row.is_tuned ? index_of(winners_[row.server]) : candidates_.size();
      for (std::size_t i = 0; i < worst.size(); ++i)
        if (there[i] > 0 || i != own) worst[i] = there[i] > 0 && worst[i] > 0 ? std::max(worst[i], there[i]) : 0;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;  // what was tuned did fit
    }
    return worst;
  }

  std::vector<double> ratios(const Tuning& comparison) const {
    std::vector<double> us(candidates_.size());
    double best = std::numeric_limits<double>::infinity();
    for (const Trial& trial : comparison.trials) {
      if (trial.verdict != Verdict::ok) continue;
      us[index_of(trial.candidate)] = trial.median_us;
      best = std::min(best, trial.median_us);
    }
    for (double& each : us) each /= best;
    return us;
  }

  Tuning compare_at(const Problem& problem, const std::vector<Candidate>& compared) {
    TuningOptions options;
    options.budget = request_.budget;
    options.only = compared;
    options.verify = compared.size() == 1;  // see is_right(); winners were
    options.inputs = request_.inputs;
    options.excluded = request_.excluded;
    options.next = request_.next;
    options.stop = request_.stop;
    options.on_run = request_.on_run;
    Tuning comparison = session_.compare(problem, options);
    result_.line.measure_ms += comparison.compile_ms + comparison.measure_ms;
    return comparison;
  }

  std::size_t index_of(const Candidate& candidate) const {
    return static_cast<std::size_t>(std::find(candidates_.begin(), candidates_.end(), candidate) - candidates_.begin());
  }

  /// The only extent in which the problems differ; nullopt: there are several.
  std::optional<std::size_t> only_differing() const {
    std::optional<std::size_t> only;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t first = request_.problems.front().extents[axis];
      const bool differs = std::any_of(request_.problems.begin(), request_.problems.end(),
                                       [&](const Problem& problem) { return problem.extents[axis] != first; });
      if (differs && only) return std::nullopt;
      if (differs) only = axis;
    }
    return only;
  }

  void assign() {
    const std::vector<std::size_t> chosen =
        axis_ ? choose_along(*axis_) : choose_cover(ratios_at_most(), request_.most_regret).candidate_of;
    std::vector<std::size_t> used;
    double behind = 0;
    for (std::size_t row = 0; row < chosen.size(); ++row) {
      if (chosen[row] == Cover::kNone) continue;
      if (std::find(used.begin(), used.end(), chosen[row]) == used.end()) used.push_back(chosen[row]);
      if (!rows_[row].is_measured) continue;
      const double ratio = std::max(1.0, ratios_.at(row, chosen[row]));  // 0: nothing was measured
      result_.line.worst_regret = std::max(result_.line.worst_regret, ratio - 1);
      behind += ratio - 1;
    }
    result_.line.winners = used.size();
    const auto measured = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.is_measured; });
    result_.line.mean_regret = behind / static_cast<double>(measured);
    for (std::size_t row = 0; row < chosen.size(); ++row) {
      if (chosen[row] == Cover::kNone) continue;
      if (!rows_[row].is_tuned) {
        rows_[row].chosen = candidates_[chosen[row]];
        rows_[row].server = server_of(rows_[row]);
      } else if (candidates_[chosen[row]] != winners_[rows_[row].server]) {
        change(row, chosen);
      }
    }
  }

  /// The ratios if whatever is slower than the fastest is as slow as its samples scatter: a regret that is accepted is
  /// one that is found again when it is measured again. Rows that were not measured scatter as the next one that was.
  ShapeTrials ratios_at_most() const {
    ShapeTrials most = ratios_;
    double scatter = 0;
    for (std::size_t row = rows_.size(); row-- > 0;) {
      if (rows_[row].is_measured) scatter = scatter_of(rows_[row].comparison);
      const std::span<double> ratios = std::span(most.us).subspan(row * most.candidates, most.candidates);
      double least = std::numeric_limits<double>::infinity();  // not 1 where a corner counts as well
      for (const double ratio : ratios)
        if (ratio > 0) least = std::min(least, ratio);
      for (double& ratio : ratios)
        if (ratio > least) ratio += scatter;
    }
    return most;
  }

  /// The median of what candidates scatter, as a share of their times.
  static double scatter_of(const Tuning& comparison) {
    std::vector<double> shares;
    for (const Trial& trial : comparison.trials)
      if (trial.verdict == Verdict::ok && trial.samples > 0) shares.push_back(trial.spread_us / trial.median_us);
    return shares.empty() ? 0 : upper_median(shares);
  }

  /// The nearest tuned problem whose search found what was chosen for this row.
  std::size_t server_of(const Row& row) const {
    for (const RunnerUp& runner_up : row.runners_up)
      if (runner_up.candidate == row.chosen) return runner_up.server;
    std::size_t nearest = row.server;
    double nearest_octaves = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < tuned_winners_.size(); ++i) {
      const double octaves = shape_distance(row.problem.extents, request_.problems[i].extents);
      if (tuned_winners_[i] == row.chosen && octaves < nearest_octaves) nearest = i, nearest_octaves = octaves;
    }
    return nearest;
  }

  /// The candidate of each row.
  std::vector<std::size_t> choose_along(std::size_t axis) const {
    TrialMatrix matrix{.sizes = {}, .candidates = ratios_.candidates, .us = ratios_at_most().us};
    for (const Row& row : rows_) matrix.sizes.push_back(row.problem.extents[axis]);
    std::vector<std::size_t> chosen(matrix.sizes.size(), Cover::kNone);
    for (const PortfolioPart& part : choose_portfolio(matrix, request_.most_regret).parts)
      for (std::size_t row = part.first; row <= part.last; ++row) chosen[row] = part.candidate;
    return chosen;
  }

  /// "n = 1024..4096" of neighbouring sizes, "5 of the 9 shapes".
  std::string served_text(std::size_t row, const std::vector<std::size_t>& chosen) const {
    if (!axis_) {
      const auto count = std::count(chosen.begin(), chosen.end(), chosen[row]);
      return fmt::format("{} of the {} shapes", count, chosen.size());
    }
    std::size_t first = row, last = row;
    while (first > 0 && chosen[first - 1] == chosen[row]) --first;
    while (last + 1 < chosen.size() && chosen[last + 1] == chosen[row]) ++last;
    return fmt::format("n = {}..{}", shape_text(rows_[first].problem), shape_text(rows_[last].problem));
  }

  /// The chosen one serves this row, a tuned one, from now on; the trials say so.
  void change(std::size_t row, const std::vector<std::size_t>& choice) {
    const Problem& problem = rows_[row].problem;
    const Tuning& comparison = rows_[row].comparison;
    std::optional<Tuning> tuning = stored_tuning(store_, session_.device()->facts(), problem);
    if (!tuning || !tuning->winner) return;
    const Candidate chosen = candidates_[choice[row]];
    Candidate& winner = winners_[rows_[row].server];
    for (const Trial& measured : comparison.trials) {
      if (measured.candidate != chosen && measured.candidate != winner) continue;
      Trial& trial = record_of(*tuning, measured);
      const bool is_default = trial.is_default;
      trial = measured;
      trial.is_default = is_default;
      if (measured.candidate == winner)
        trial.reason = fmt::format(
            "{:.2f} times the chosen one's time, and {:.2f} times the best one's{}: gave way to the one that serves {} "
            "alike",
            measured.median_us / time_of(comparison, chosen), ratios_.at(row, index_of(winner)),
            largest_corner(problem) ? " here or at the largest of its octaves" : "", served_text(row, choice));
    }
    tuning->winner = find_trial(*tuning, chosen);
    try {
      session_.adopt(*tuning, std::span(&problem, 1));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      return;  // it gave a wrong result at this size: the former winner stays
    }
    winner = chosen;
    result_.changed.push_back({.problem = problem,
                               .outcome = Outcome::tuned,
                               .candidate = chosen,
                               .median_us = time_of(comparison, chosen),
                               .measured_problem = problem});
  }

  static std::optional<std::size_t> find_trial(const Tuning& tuning, const Candidate& candidate) {
    const auto at = std::find_if(tuning.trials.begin(), tuning.trials.end(),
                                 [&](const Trial& trial) { return trial.candidate == candidate; });
    if (at == tuning.trials.end()) return {};
    return static_cast<std::size_t>(at - tuning.trials.begin());
  }

  static double time_of(const Tuning& comparison, const Candidate& candidate) {
    const std::optional<std::size_t> trial = find_trial(comparison, candidate);
    return trial ? comparison.trials[*trial].median_us : 0;
  }

  /// The record of the same candidate, or a new one.
  static Trial& record_of(Tuning& tuning, const Trial& measured) {
    const std::optional<std::size_t> known = find_trial(tuning, measured.candidate);
    return known ? tuning.trials[*known] : tuning.trials.emplace_back(measured);
  }

  /// The trials of a tuned problem are read once for all that it serves.
  void serve_between() {
    std::map<std::size_t, std::vector<const Row*>> served;  // by the tuned problem's index
    for (const std::vector<Row>* rows : {&rows_, &between_})
      for (const Row& row : *rows)
        if (!row.is_tuned) served[row.server].push_back(&row);
    for (const auto& [server, rows] : served) {
      std::optional<Tuning> tuning = stored_tuning(store_, session_.device()->facts(), request_.problems[server]);
      if (!tuning) continue;
      std::map<std::size_t, std::vector<Problem>> by_trial;
      for (const Row* row : rows) {
        if (const std::optional<std::size_t> trial = trial_that_serves(*row, *tuning))
          by_trial[*trial].push_back(row->problem);
        if (request_.stop.stop_requested()) return;  // what was being verified may be right
      }
      for (const auto& [trial, problems] : by_trial) {
        tuning->winner = trial;
        if (adopted(*tuning, problems)) continue;
        for (const Problem& problem : problems) adopted(*tuning, std::span(&problem, 1));  // all but the one, then
      }
    }
  }

  /// False, and nothing has changed, when the tuning's winner cannot serve one of them.
  bool adopted(const Tuning& tuning, std::span<const Problem> problems) {
    try {
      session_.adopt(tuning, problems);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      return false;
    }
    result_.line.filled += problems.size();
    return true;
  }

  /// `tuning`: of the server; nullopt: what was chosen makes no sense at the row.
  std::optional<std::size_t> trial_that_serves(const Row& row, const Tuning& tuning) {
    const bool is_chosen = row.chosen && is_right(row.problem, *row.chosen);
    for (const Candidate& candidate : {is_chosen ? *row.chosen : winners_[row.server], winners_[row.server]}) {
      if (!row.problem.family->is_valid(row.problem, candidate.policy, session_.device()->facts()).empty()) continue;
      if (const std::optional<std::size_t> trial = find_trial(tuning, candidate)) return trial;
    }
    return {};
  }

  /// Winners were verified when they won; runners-up are verified where they first serve.
  bool is_right(const Problem& problem, const Candidate& candidate) {
    for (const std::vector<Candidate>* known : {&tuned_winners_, &verified_})
      if (std::find(known->begin(), known->end(), candidate) != known->end()) return true;
    if (!compare_at(problem, {candidate}).winner) return false;
    verified_.push_back(candidate);
    return true;
  }

  Session& session_;
  const ShareRequest& request_;
  const cache::Store store_;
  const std::optional<std::size_t> axis_;  ///< the only extent in which the problems differ
  std::vector<Candidate> tuned_winners_;   ///< of the problems, as they were found
  std::vector<Candidate> winners_;         ///< of the problems, now
  std::vector<Candidate> candidates_;      ///< the different ones: of those, and runners-up
  std::size_t line_winners_ = 0;           ///< so many of them, the first ones, are winners
  std::vector<Row> rows_;                  ///< what they are chosen for, ascending along axis_
  std::vector<Row> between_;               ///< what else they serve
  const bool is_newly_tuned_;              ///< one of the problems at least
  bool was_shared_ = false;                ///< winners of the problems serve classes between them already
  ShapeTrials ratios_;                     ///< times at the rows ÷ the fastest one's there, as far as it was measured
  std::vector<Candidate> verified_;        ///< runners-up that were right
  ShareResult result_;
};

}  // namespace

ShareResult share_winners(Session& session, const ShareRequest& request) {
  const auto failed = [&](const char* what) {
    ShareResult result;
    result.line = {.first = request.problems.front(), .sizes = request.problems.size(), .failure = what};
    return result;
  };
  try {
    return Sharing(session, request).run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::device_lost) throw;
    return failed(error.what());
  } catch (const cache::StoreError& error) {
    return failed(error.what());
  }
}

}  // namespace hone::tuner
