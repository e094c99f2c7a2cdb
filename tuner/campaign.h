// run_campaign(): tune a list of problems and say what became of each.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <hone/session.h>

namespace hone::tuner {

/// What became of one problem of a campaign.
enum class Outcome {
  tuned,        ///< has a new winner
  kept,         ///< the cache had a tuned winner already
  failed,       ///< no candidate could be measured; CampaignItem::reason says why
  interrupted,  ///< stopped while it was being tuned
  not_reached,  ///< the campaign ended before its turn
};

struct CampaignItem {
  Problem problem;
  Outcome outcome = Outcome::not_reached;
  std::string reason;
  Candidate candidate;       ///< the winner's; only for tuned and kept
  double median_us = 0;      ///< at measured_problem
  Problem measured_problem;  ///< a kept winner may have been measured at another size of its range
  double default_us = 0;     ///< of the model's default candidate; 0 where it was not measured now
  int measured = 0;          ///< candidates measured
  int rejected = 0;          ///< candidates rejected, failed or wrong
  double compile_ms = 0;
  double measure_ms = 0;
  bool budget_spent = false;
  SearchEnd search_end = SearchEnd::everything_searched;
  double rank_correlation = 0;  ///< of the model's predictions with what was measured; 0: not known
  int discarded_samples = 0;    ///< taken while the device was throttled or shared
};

struct CampaignResult {
  std::vector<CampaignItem> items;  ///< in the order of the problems
  bool interrupted = false;
  bool out_of_budget = false;  ///< the total budget ended it
  std::string cache_failure;   ///< winners could not be stored: why; ended the campaign
  std::string device_failure;  ///< the device failed: why; ended the campaign
};

/// Called from the thread that runs the campaign.
class CampaignObserver {
 public:
  virtual ~CampaignObserver() = default;
  virtual void planned(std::size_t to_tune, std::size_t kept) = 0;
  virtual void started(const Problem& problem) = 0;
  virtual void progressed(const TuningProgress& progress) = 0;
  virtual void finished(const CampaignItem& item) = 0;
};

struct CampaignOptions {
  std::chrono::milliseconds budget{2000};                 ///< per problem
  std::optional<std::chrono::milliseconds> total_budget;  ///< for all; the last problem's budget shrinks to fit
  bool again = false;                                     ///< tune even what has a tuned winner
  bool exhaustive = false;                                ///< TuningOptions::exhaustive
  InputState inputs = InputState::cold;                   ///< TuningOptions::inputs
  std::stop_token stop;
  std::function<std::chrono::steady_clock::time_point()> now = &std::chrono::steady_clock::now;
};

/// The problems without those that share a size class, and so a winner, with an earlier one.
std::vector<Problem> one_per_size_class(std::span<const Problem> problems);

/// Tunes each problem that the session has no tuned winner for. The session's MissPolicy must be `error`: a lookup is
/// then only a lookup. A problem that fails does not end the campaign; a stop, a spent total budget, a failing
/// device or a cache that cannot be written does. Everything finished by then is stored.
CampaignResult run_campaign(Session& session, std::span<const Problem> problems, const CampaignOptions& options,
                            CampaignObserver& observer);

}  // namespace hone::tuner
