#include "tuner/explanation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tuner/quantities.h"

namespace hone::tuner {
namespace {

using cache::TrialRecord;

bool is_same(const cache::CandidateRecord& a, const cache::CandidateRecord& b) {
  return a.variant == b.variant && a.max_blocks == b.max_blocks;
}

/// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = (static_cast<double>(begin + end) + 1) / 2;
    begin = end;
  }
  return ranks;
}

/// Spearman's: Pearson's of the ranks.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2) return 0;
  const std::vector<double> ranks_a = ranks_of(a);
  const std::vector<double> ranks_b = ranks_of(b);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (ranks_a[i] - mean) * (ranks_b[i] - mean);
    of_a += (ranks_a[i] - mean) * (ranks_a[i] - mean);
    of_b += (ranks_b[i] - mean) * (ranks_b[i] - mean);
  }
  return of_a > 0 && of_b > 0 ? both / std::sqrt(of_a * of_b) : 0;
}

double footprint(const cache::CandidateRecord& candidate) {
  return static_cast<double>(candidate.max_blocks) * candidate.block_threads * std::max(candidate.registers, 1);
}

/// Of one that was measured to the end beside the winner, and was not clearly slower.
std::string why_tied(const TrialRecord& trial, const TrialRecord& winner) {
  const double ratio = footprint(trial.candidate) / std::max(footprint(winner.candidate), 1.0);
  if (ratio > 1) return fmt::format("as fast as can be told, but takes {:.3g} times the threads and registers", ratio);
  return "as fast as can be told, but not faster in the pairs, or the winner serves a neighbouring size already";
}

CandidateFate fate_of(const TrialRecord& trial, const TrialRecord* winner) {
  CandidateFate fate{.trial = &trial, .why = trial.reason};
  if (trial.verdict == "wrong") fate.fate = Fate::wrong;
  if (trial.verdict == "failed") fate.fate = Fate::failed;
  if (trial.verdict != "ok" || winner == nullptr) return fate;
  if (winner->median_us > 0) fate.gap = trial.median_us / winner->median_us - 1;
  if (&trial == winner) {
    fate.fate = Fate::won;
    return fate;
  }
  if (!trial.reason.empty()) {
    fate.fate = Fate::gave_way;
    return fate;
  }
  const bool to_the_end = trial.samples >= winner->samples;
  if (to_the_end && std::abs(trial.median_us - winner->median_us) <= trial.spread_us + winner->spread_us) {
    fate.fate = Fate::tied;
    fate.why = why_tied(trial, *winner);
  } else {
    fate.fate = Fate::beaten;
    fate.why = to_the_end ? "slower than the winner, side by side to the end"
                          : fmt::format("dropped out after {} sample{}, slower by more than they scatter", trial.samples,
                                        trial.samples == 1 ? "" : "s");
  }
  return fate;
}

}  // namespace

std::string_view name(Fate fate) {
  constexpr std::array<std::string_view, 7> kNames{"won", "tied", "gave way", "beaten", "wrong", "failed", "rejected"};
  return kNames[static_cast<std::size_t>(fate)];
}

Explanation explain(const cache::WinnerRecord& winner, const cache::TuningRecord& tuning) {
  Explanation result;
  for (const TrialRecord& trial : tuning.trials)
    if (is_same(trial.candidate, winner.candidate)) result.winner = &trial;
  std::vector<double> predicted, measured;
  for (const TrialRecord& trial : tuning.trials) {
    result.candidates.push_back(fate_of(trial, result.winner));
    if (trial.verdict != "ok") continue;
    ++result.measured;
    if (trial.is_default) result.standard = &trial;
    predicted.push_back(trial.predicted_us);
    measured.push_back(trial.median_us);
    const bool is_next = &trial != result.winner && (!result.runner_up || trial.median_us < result.runner_up->median_us);
    if (is_next) result.runner_up = &trial;
  }
  std::stable_partition(result.candidates.begin(), result.candidates.end(),
                        [](const CandidateFate& fate) { return fate.fate == Fate::won; });
  result.rank_correlation = rank_correlation(predicted, measured);
  if (result.winner)
    result.place_of_winner = static_cast<std::size_t>(
        std::count_if(tuning.trials.begin(), tuning.trials.end(), [&](const TrialRecord& trial) {
          return trial.predicted_us > 0 && trial.predicted_us < result.winner->predicted_us;
        }));
  return result;
}

}  // namespace hone::tuner
