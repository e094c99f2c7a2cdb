// share_winners(): few winners for the sizes or shapes of one line, and none missing between them.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <vector>

#include <hone/session.h>

#include "tuner/campaign/item.h"

namespace hone::tuner {

struct ShareRequest {
  std::vector<Problem> problems;   ///< same_line(), ascending, each with a tuned winner of its own
  std::vector<bool> may_change;    ///< those whose winner may become another; the others were kept
  double most_regret = 0.01;
  std::chrono::milliseconds budget{2000};  ///< for each size
  InputState inputs = InputState::cold;
  std::vector<ExcludedCandidate> excluded = {};
  std::stop_token stop = {};
  std::function<void(const TuningProgress&)> on_progress = {};
  std::function<void(const Candidate&)> on_run = {};
};

struct ShareResult {
  LineResult line;
  std::vector<CampaignItem> changed;  ///< problem, candidate and median_us of those that have another winner now
};

/// Measures the winners of all sizes at each size, and at the largest size of its octave, side by side. Gives each size
/// one of the few that choose_portfolio() picks by the worse of the two, and stores that with both trials' new figures.
/// Where more than one extent differs, choose_cover() picks, and the second measurement is made where all extents are
/// the largest of their octaves. Classes between the measured ones that have no tuned winner of their own are served as
/// shapes_between() says, as far as the family allows. When `stop` is requested, all is left as it was. Throws
/// Error(device_lost); other failures are LineResult::failure.
ShareResult share_winners(Session& session, const ShareRequest& request);

}  // namespace hone::tuner
