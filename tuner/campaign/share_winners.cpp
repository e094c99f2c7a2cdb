#include "tuner/campaign/share_winners.h"

#include <fmt/core.h>

#include <hone/error.h>
#include <hone/portfolio.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
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
      ratios_.us.insert(ratios_.us.end(), us.begin(), us.end());
    }
    ratios_.shapes = request_.problems.size();
    ratios_.candidates = candidates_.size();
    return true;
  }

  /// How many times as long as the fastest each candidate takes, at the tuned size or at the largest one of its octave,
  /// whichever is worse; 0: it may not serve.
  std::vector<double> compare(std::size_t size) {
    const Problem& tuned = request_.problems[size];
    comparisons_.back() = compare_at(tuned);
    std::vector<double> worst = ratios(comparisons_.back());
    Problem edge = tuned;
    const std::array<SizeRange, 3> ranges = size_ranges(tuned.extents);
    for (std::size_t axis = 0; axis < ranges.size(); ++axis) edge.extents[axis] = ranges[axis].last;
    const bool is_another = edge.extents != tuned.extents && edge.family->refuse(edge).empty();
    if (!is_another || request_.stop.stop_requested()) return worst;
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
    const std::optional<std::size_t> axis = only_differing();
    const std::vector<std::size_t> chosen =
        axis ? choose_along(*axis) : choose_cover(ratios_, request_.most_regret).candidate_of;
    std::vector<std::size_t> used;
    double behind = 0;
    for (std::size_t size = 0; size < chosen.size(); ++size) {
      if (chosen[size] == Cover::kNone) continue;
      if (std::find(used.begin(), used.end(), chosen[size]) == used.end()) used.push_back(chosen[size]);
      const double ratio = ratios_.at(size, chosen[size]);
      result_.line.worst_regret = std::max(result_.line.worst_regret, ratio - 1);
      behind += ratio - 1;
    }
    result_.line.winners = used.size();
    result_.line.mean_regret = behind / static_cast<double>(request_.problems.size());
    for (std::size_t size = 0; size < chosen.size(); ++size)
      if (chosen[size] != Cover::kNone && candidates_[chosen[size]] != winners_[size]) change(size, chosen);
  }

  /// The candidate of each size.
  std::vector<std::size_t> choose_along(std::size_t axis) const {
    TrialMatrix matrix{.sizes = {}, .candidates = ratios_.candidates, .us = ratios_.us};
    for (const Problem& problem : request_.problems) matrix.sizes.push_back(problem.extents[axis]);
    std::vector<std::size_t> chosen(matrix.sizes.size(), Cover::kNone);
    for (const PortfolioPart& part : choose_portfolio(matrix, request_.most_regret).parts)
      for (std::size_t size = part.first; size <= part.last; ++size) chosen[size] = part.candidate;
    return chosen;
  }

  /// "n = 1024..4096" of neighbouring sizes, "5 of the 9 shapes".
  std::string served_text(std::size_t size, const std::vector<std::size_t>& chosen) const {
    if (!only_differing()) {
      const auto count = std::count(chosen.begin(), chosen.end(), chosen[size]);
      return fmt::format("{} of the {} shapes", count, chosen.size());
    }
    std::size_t first = size, last = size;
    while (first > 0 && chosen[first - 1] == chosen[size]) --first;
    while (last + 1 < chosen.size() && chosen[last + 1] == chosen[size]) ++last;
    return fmt::format("n = {}..{}", shape_text(request_.problems[first]), shape_text(request_.problems[last]));
  }

  /// The chosen one serves this size from now on; the trials say so.
  void change(std::size_t size, const std::vector<std::size_t>& choice) {
    const Problem& problem = request_.problems[size];
    std::optional<Tuning> tuning = stored_tuning(store_, session_.device()->facts(), problem);
    if (!tuning || !tuning->winner) return;
    const Candidate chosen = candidates_[choice[size]];
    const Candidate former = winners_[size];
    for (const Trial& measured : comparisons_[size].trials) {
      if (measured.candidate != chosen && measured.candidate != former) continue;
      Trial& trial = record_of(*tuning, measured);
      const bool is_default = trial.is_default;
      trial = measured;
      trial.is_default = is_default;
      if (measured.candidate == former)
        trial.reason = fmt::format(
            "{:.2f} times the chosen one's time, and up to {:.2f} times the best one's within the "
            "octave: gave way to the one that serves {} alike",
            measured.median_us / time_of(comparisons_[size], chosen), ratios_.at(size, index_of(former)),
            served_text(size, choice));
    }
    const auto at = std::find_if(tuning->trials.begin(), tuning->trials.end(),
                                 [&](const Trial& trial) { return trial.candidate == chosen; });
    tuning->winner = static_cast<std::size_t>(at - tuning->trials.begin());
    try {
      session_.adopt(*tuning, std::span(&problem, 1));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      return;  // it gave a wrong result at this size: the former winner stays
    }
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
    std::vector<Extents> tuned;
    for (const Problem& problem : request_.problems) tuned.push_back(problem.extents);
    std::map<std::size_t, std::vector<Problem>> missing;  // by the problem whose winner serves them
    for (const ShapeBetween& between : shapes_between(tuned)) {
      Problem problem = request_.problems[between.served_by];
      const Candidate& winner = winners_[between.served_by];
      problem.extents = between.extents;
      const bool is_served = problem.family->refuse(problem).empty() &&
                             problem.family->reject(problem, winner.variant, session_.device()->facts()).empty();
      if (is_served && look_up(session_, problem).outcome != Outcome::kept)
        missing[between.served_by].push_back(problem);
    }
    for (const auto& [server, problems] : missing) {
      const std::optional<Tuning> tuning =
          stored_tuning(store_, session_.device()->facts(), request_.problems[server]);
      if (!tuning || !tuning->winner) continue;
      session_.adopt(*tuning, problems);
      result_.line.filled += problems.size();
    }
  }

  Session& session_;
  const ShareRequest& request_;
  const cache::Store store_;
  std::vector<Candidate> winners_;     ///< of the sizes
  std::vector<Candidate> candidates_;  ///< the different ones among them
  std::vector<Tuning> comparisons_;    ///< of the sizes; without trials where the winner was kept
  ShapeTrials ratios_;                 ///< times at the sizes ÷ the fastest one's there
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
