// What a worker does with one problem: looks it up, or tunes it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <hone/session.h>

#include "tuner/campaign/item.h"

namespace hone::tuner {

struct TuneRequest {
  Problem problem;
  double weight = 1;
  std::chrono::milliseconds budget{2000};
  bool exhaustive = false;
  InputState inputs = InputState::cold;
  std::vector<ExcludedCandidate> excluded = {};
  std::optional<Problem> next = {};  ///< TuningOptions::next
  std::stop_token stop = {};
  std::function<void(const TuningProgress&)> on_progress = {};
  std::function<void(const Candidate&)> on_run = {};
};

/// The tuned winner that serves the problem and was measured in its own size class, as `kept`; else `not_reached`. The
/// session's MissPolicy must be `error`: a lookup is then only a lookup.
CampaignItem look_up(Session& session, const Problem& problem);

/// Tunes, and stores the winner. A problem that cannot be tuned is `failed`; Error(device_lost) is thrown, and
/// Error(cache_failed) when the winner could not be stored.
CampaignItem tune_problem(Session& session, const TuneRequest& request);

}  // namespace hone::tuner
