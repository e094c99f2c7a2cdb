// CampaignItem and SweepResult: what became of one problem of a campaign, and of a size sweep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <hone/candidate.h>
#include <hone/tuning.h>

#include "tuner/text/reasons.h"

namespace hone::tuner {

enum class Outcome : std::uint8_t {
  tuned,        ///< has a new winner
  kept,         ///< the cache had a tuned winner already
  untuned,      ///< the budget allowed for one candidate alone: stored as untuned
  failed,       ///< no candidate could be measured; CampaignItem::reason says why
  not_stored,   ///< its winner could not be written to the cache; CampaignItem::reason says why
  interrupted,  ///< stopped while it was being tuned
  not_reached,  ///< the campaign ended before its turn
};
inline constexpr std::size_t kOutcomes = 7;

struct CampaignItem {
  Problem problem;
  double weight = 1;
  std::size_t device = 0;  ///< index into CampaignResult::devices
  Outcome outcome = Outcome::not_reached;
  std::string reason = {};
  Candidate candidate = {};       ///< the winner's; for tuned, kept and untuned
  double median_us = 0;           ///< at measured_problem
  Problem measured_problem = {};  ///< a kept winner may have been measured at another size of its range
  double default_us = 0;          ///< of the model's default candidate; 0 where it was not measured now
  int measured = 0;               ///< candidates measured
  int rejected = 0;               ///< candidates rejected, failed or wrong
  std::vector<ReasonCount> reasons = {};    ///< why those were
  std::vector<std::string> died = {};       ///< candidates that hung or killed the worker, with what happened
  bool is_stale = false;  ///< a kept winner was measured under another driver
  double compile_ms = 0;  ///< of waiting for the compiler
  double measure_ms = 0;  ///< with verifying
  double verify_ms = 0;
  double roofline_us = 0;  ///< what memory takes at least; 0: not known
  bool budget_spent = false;
  bool is_cut_off = false;  ///< the total budget left less than a budget, which did not do: as if not reached
  SearchEnd search_end = SearchEnd::everything_searched;
  double rank_correlation = 0;  ///< of the model's predictions with what was measured; 0: not known
  int discarded_samples = 0;    ///< taken while the device was throttled or shared
  std::string disturbance = {};  ///< what was seen then
};

/// The portfolio made this of a size sweep: problems that differ in size alone.
struct SweepResult {
  Problem first;  ///< the smallest one
  std::size_t device = 0;
  std::size_t sizes = 0;          ///< of them measured
  std::size_t winners_before = 0;
  std::size_t winners = 0;        ///< different candidates that serve all sizes now
  double worst_regret = 0;        ///< against the best of all winners, at all that was measured
  double mean_regret = 0;
  std::size_t filled = 0;         ///< size classes between the measured ones that are served, too
  double measure_ms = 0;
  std::string failure = {};       ///< why it was left as it was; "": it was not
};

}  // namespace hone::tuner
