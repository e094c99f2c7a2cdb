// Explanation: what became of every candidate of one tuning, and what the winner is worth. Pure: rows in, words out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

/// How a candidate left the race, from the first to the last to go.
enum class Fate {
  won,
  tied,      ///< could not be told from the winner, and took more resources, or served no neighbour
  gave_way,  ///< the fastest here, but another serves more sizes
  beaten,    ///< measured, and lost to the winner side by side
  wrong,
  failed,
  rejected,
};

struct CandidateFate {
  const cache::TrialRecord* trial = nullptr;
  Fate fate = Fate::rejected;
  double gap = 0;   ///< time ÷ the winner's − 1; only where measured
  std::string why;  ///< in words; whole sentence parts, without the figures that columns show
};

struct Explanation {
  std::vector<CandidateFate> candidates;  ///< the winner first, then in the order of the trials
  const cache::TrialRecord* winner = nullptr;
  const cache::TrialRecord* standard = nullptr;  ///< the model's first choice, if it was measured
  const cache::TrialRecord* runner_up = nullptr; ///< the fastest other one
  int measured = 0;
  double rank_correlation = 0;  ///< Spearman's, of predicted with measured times; 0 with fewer than two
  std::optional<std::size_t> place_of_winner;  ///< how many candidates the model had put before it
};

/// `tuning` must outlive the result.
Explanation explain(const cache::WinnerRecord& winner, const cache::TuningRecord& tuning);

/// "won", "tied", "gave way", "beaten", "wrong", "failed", "rejected".
std::string_view name(Fate fate);

}  // namespace hone::tuner
