// share_winners(): few winners for the sizes or shapes of one line, and none missing between them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include <hone/session.h>

#include "tuner/campaign/item.h"

namespace hone::tuner {

struct ShareRequest {
  std::vector<Problem> problems;  ///< same_line(), ascending, each with a tuned winner of its own
  std::vector<bool> may_change;   ///< those whose winner may become another; the others were kept, and keep theirs;
                                  ///< unless none may change, and nothing between the problems is served
  double most_regret = 0.01;
  std::chrono::milliseconds budget{2000};  ///< for each size
  InputState inputs = InputState::cold;
  std::vector<ExcludedCandidate> excluded = {};
  std::optional<Problem> next = {};  ///< TuningOptions::next
  std::stop_token stop = {};
  std::function<void(const TuningProgress&)> on_progress = {};
  std::function<void(const Candidate&)> on_run = {};
};

struct ShareResult {
  LineResult line;
  std::vector<CampaignItem> changed;  ///< problem, candidate and median_us of those that have another winner now
};

/// Measures the winners of all sizes side by side, at each size, with the runners-up of the sizes next to it that its
/// own search did not measure; and at the center of up to three classes between two of them that have no tuned winner
/// of their own, if not all are alike at both, those that are near the fastest at one of them and their runners-up.
/// Gives each one of the few that choose_portfolio() picks, with what samples scatter added to whatever is slower than
/// the fastest, and stores that, at the sizes with the trials' new figures. Where more than one extent is used, the
/// largest corner of each box is measured, too, and the worse of the two counts; a problem's own winner may serve it
/// even where it is no candidate at the corner. Where more than one differs, choose_cover() picks, and the classes
/// between are served without being measured, as shapes_between() says. When `stop` is requested, all is left as it
/// was; where nothing is left to do, LineResult::winners is 0. Throws Error(device_lost); other failures are
/// LineResult::failure.
ShareResult share_winners(Session& session, const ShareRequest& request);

}  // namespace hone::tuner
