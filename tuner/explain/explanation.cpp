#include "tuner/explain/explanation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <hone/candidate.h>
#include <hone/sdk/rank_correlation.h>

#include "tuner/text/quantities.h"

namespace hone::tuner {
namespace {

using cache::TrialRecord;

bool is_same(const cache::CandidateRecord& a, const cache::CandidateRecord& b) {
  return a.policy == b.policy && a.max_blocks == b.max_blocks;
}

double footprint(const cache::CandidateRecord& candidate) {
  return static_cast<double>(candidate.max_blocks) * candidate.block_threads * std::max(candidate.registers, 1);
}

/// Says why one lost that was measured to the end beside the winner, and was not clearly slower.
std::string why_tied(const TrialRecord& trial, const TrialRecord& winner) {
  if (Geometry{trial.candidate.max_blocks}.is_block_per_tile() &&
      !Geometry{winner.candidate.max_blocks}.is_block_per_tile())
    return "as fast as can be told, but with a block for every tile";
  const double ratio = footprint(trial.candidate) / std::max(footprint(winner.candidate), 1.0);
  if (ratio > 1) return fmt::format("as fast as can be told, but takes {:.3g} times the threads and registers", ratio);
  return "as fast as can be told, but not faster in the pairs, or the winner serves a neighbouring size already";
}

/// Says how one was beaten. Rivals are compared pair by pair, so that one with the lower median may lose.
std::string why_beaten(const TrialRecord& trial, const TrialRecord& winner) {
  std::string why = trial.samples >= winner.samples ? "lost side by side, pair by pair"
                                                    : fmt::format("dropped out of the race side by side after {}",
                                                                  count_text(trial.samples, "sample"));
  if (trial.median_us < winner.median_us) why += ", although its median is lower";
  return why;
}

/// One that was measured, where the winner was chosen by its energy.
void judge_by_energy(const TrialRecord& trial, const TrialRecord& winner, CandidateFate& fate) {
  fate.fate = Fate::beaten;
  if (trial.energy_uj <= 0) {
    fate.why = "not among the fastest few, whose energy is measured";
    return;
  }
  const double more = trial.energy_uj / winner.energy_uj - 1;
  const bool meets = std::abs(trial.energy_uj - winner.energy_uj) <= trial.energy_spread_uj + winner.energy_spread_uj;
  if (meets) fate.fate = Fate::tied;
  fate.why = meets ? "takes as much energy as can be told, and more time"
                   : fmt::format("takes {:.1f} % more energy a call", 100 * more);
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
  if (winner->energy_uj > 0) {
    judge_by_energy(trial, *winner, fate);
    return fate;
  }
  const bool to_the_end = trial.samples >= winner->samples;
  if (to_the_end && std::abs(trial.median_us - winner->median_us) <= trial.spread_us + winner->spread_us) {
    fate.fate = Fate::tied;
    fate.why = why_tied(trial, *winner);
  } else {
    fate.fate = Fate::beaten;
    fate.why = why_beaten(trial, *winner);
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
    const bool is_next =
        &trial != result.winner && (!result.runner_up || trial.median_us < result.runner_up->median_us);
    if (is_next) result.runner_up = &trial;
  }
  std::stable_partition(result.candidates.begin(), result.candidates.end(),
                        [](const CandidateFate& fate) { return fate.fate == Fate::won; });
  result.rank_correlation = spearman(predicted, measured);
  if (result.winner)
    result.place_of_winner = static_cast<std::size_t>(
        std::count_if(tuning.trials.begin(), tuning.trials.end(), [&](const TrialRecord& trial) {
          if (&trial == result.winner || result.winner == result.standard) return false;
          return &trial == result.standard ||  // the first of those with equal predictions
                 (trial.predicted_us > 0 && trial.predicted_us < result.winner->predicted_us);
        }));
  return result;
}

}  // namespace hone::tuner
