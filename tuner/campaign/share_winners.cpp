#include "tuner/campaign/share_winners.h"

#include <fmt/core.h>

#include <hone/error.h>
#include <hone/portfolio.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "cache/store.h"
#include "tuner/campaign/stored_trials.h"
#include "tuner/campaign/tune_problem.h"
#include "tuner/quantities.h"

namespace hone::tuner {
namespace {

class Sharing {
 public:
  Sharing(Session& session, const ShareRequest& request)
      : session_(session), request_(request), store_(session.options().cache_path) {}

  ShareResult run() {
    result_.line.first = request_.problems.front();
    result_.line.sizes = request_.problems.size();
    for (const Problem& problem : request_.problems) winners_.push_back(session_.prepare(problem).winner->candidate);
    for (const Candidate& winner : winners_)
      if (std::find(candidates_.begin(), candidates_.end(), winner) == candidates_.end()) candidates_.push_back(winner);
    result_.line.winners_before = result_.line.winners = candidates_.size();
    if (candidates_.size() > 1 && measure()) assign();
    if (!request_.stop.stop_requested()) fill_gaps();
    return std::move(result_);
  }

 private:
  /// Times of all winners at all sizes whose winner may change; false when it was stopped.
  bool measure() {
    for (std::size_t size = 0; size < request_.problems.size(); ++size) {
      matrix_.sizes.push_back(request_.problems[size].extents[0]);
      std::vector<double> us(candidates_.size());
      comparisons_.emplace_back();
      if (request_.may_change[size]) {
        if (request_.on_progress)
          request_.on_progress({.phase = TuningPhase::measuring,
                                .done = static_cast<int>(size),
                                .total = static_cast<int>(request_.problems.size()),
                                .best_us = 0});
        us = compare(size);
        if (request_.stop.stop_requested()) return false;
      } else {
        us[index_of(winners_[size])] = 1;  // the only one that may serve
      }
      matrix_.us.insert(matrix_.us.end(), us.begin(), us.end());
    }
    matrix_.candidates = candidates_.size();
    return true;
  }

  /// How many times as long as the fastest each candidate takes, at the tuned size or at the largest one of its octave,
  /// whichever is worse; 0: it may not serve.
  std::vector<double> compare(std::size_t size) {
    const Problem& tuned = request_.problems[size];
    comparisons_.back() = compare_at(tuned);
    std::vector<double> worst = ratios(comparisons_.back());
    Problem edge = tuned;
    edge.extents[0] = size_range(size_class(tuned.extents[0])).last;
    if (edge.extents[0] == tuned.extents[0] || request_.stop.stop_requested()) return worst;
    try {
      const std::vector<double> there = ratios(compare_at(edge));
      for (std::size_t i = 0; i < worst.size(); ++i)
        worst[i] = there[i] > 0 && worst[i] > 0 ? std::max(worst[i], there[i]) : 0;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;  // the tuned size did fit
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

  Tuning compare_at(const Problem& problem) {
    TuningOptions options;
    options.budget = request_.budget;
    options.only = candidates_;
    options.inputs = request_.inputs;
    options.excluded = request_.excluded;
    options.stop = request_.stop;
    options.on_run = request_.on_run;
    Tuning comparison = session_.compare(problem, options);
    result_.line.measure_ms += comparison.compile_ms + comparison.measure_ms;
    return comparison;
  }

  std::size_t index_of(const Candidate& candidate) const {
    return static_cast<std::size_t>(std::find(candidates_.begin(), candidates_.end(), candidate) - candidates_.begin());
  }

  void assign() {
    const Portfolio portfolio = choose_portfolio(matrix_, request_.most_regret);
    std::vector<std::size_t> used;
    double behind = 0;
    for (const PortfolioPart& part : portfolio.parts) {
      if (std::find(used.begin(), used.end(), part.candidate) == used.end()) used.push_back(part.candidate);
      for (std::size_t size = part.first; size <= part.last; ++size) {
        const double ratio = matrix_.at(size, part.candidate);
        result_.line.worst_regret = std::max(result_.line.worst_regret, ratio - 1);
        behind += ratio - 1;
        if (candidates_[part.candidate] != winners_[size]) change(size, part);
      }
    }
    result_.line.winners = used.size();
    result_.line.mean_regret = behind / static_cast<double>(request_.problems.size());
  }

  /// The winner of the part serves this size from now on; the trials say so.
  void change(std::size_t size, const PortfolioPart& part) {
    const Problem& problem = request_.problems[size];
    std::optional<Tuning> tuning = stored_tuning(store_, session_.device()->facts(), problem);
    if (!tuning || !tuning->winner) return;
    const Candidate chosen = candidates_[part.candidate];
    const Candidate former = winners_[size];
    for (const Trial& measured : comparisons_[size].trials) {
      if (measured.candidate != chosen && measured.candidate != former) continue;
      Trial& trial = record_of(*tuning, measured);
      const bool is_default = trial.is_default;
      trial = measured;
      trial.is_default = is_default;
      if (measured.candidate == former)
        trial.reason = fmt::format("{:.2f} times the chosen one's time, and up to {:.2f} times the best one's within the "
                                   "octave: gave way to the one that serves n = {}..{} alike",
                                   measured.median_us / time_of(comparisons_[size], chosen),
                                   matrix_.at(size, index_of(former)), request_.problems[part.first].extents[0],
                                   request_.problems[part.last].extents[0]);
    }
    const auto at = std::find_if(tuning->trials.begin(), tuning->trials.end(),
                                 [&](const Trial& trial) { return trial.candidate == chosen; });
    tuning->winner = static_cast<std::size_t>(at - tuning->trials.begin());
    session_.adopt(*tuning, std::span(&problem, 1));
    winners_[size] = chosen;
    result_.changed.push_back({.problem = problem,
                               .outcome = Outcome::tuned,
                               .candidate = chosen,
                               .median_us = at->median_us,
                               .measured_problem = problem});
  }

  static double time_of(const Tuning& comparison, const Candidate& candidate) {
    for (const Trial& trial : comparison.trials)
      if (trial.candidate == candidate) return trial.median_us;
    return 0;
  }

  /// The record of the same candidate, or a new one.
  static Trial& record_of(Tuning& tuning, const Trial& measured) {
    const auto known = std::find_if(tuning.trials.begin(), tuning.trials.end(),
                                    [&](const Trial& trial) { return trial.candidate == measured.candidate; });
    return known != tuning.trials.end() ? *known : tuning.trials.emplace_back(measured);
  }

  void fill_gaps() {
    for (std::size_t size = 1; size < request_.problems.size(); ++size) {
      const Problem& upper = request_.problems[size];
      std::vector<Problem> missing;
      for (int between = size_class(request_.problems[size - 1].extents[0]) + 1; between < size_class(upper.extents[0]);
           ++between) {
        Problem problem = upper;
        problem.extents[0] = std::int64_t{1} << between;
        if (look_up(session_, problem).outcome != Outcome::kept) missing.push_back(problem);
      }
      if (missing.empty()) continue;
      const std::optional<Tuning> tuning = stored_tuning(store_, session_.device()->facts(), upper);
      if (!tuning || !tuning->winner) continue;
      session_.adopt(*tuning, missing);
      result_.line.filled += missing.size();
    }
  }

  Session& session_;
  const ShareRequest& request_;
  const cache::Store store_;
  std::vector<Candidate> winners_;     ///< of the sizes
  std::vector<Candidate> candidates_;  ///< the different ones among them
  std::vector<Tuning> comparisons_;    ///< of the sizes; without trials where the winner was kept
  TrialMatrix matrix_;
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
