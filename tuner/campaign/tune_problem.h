// A worker does this with one problem: looks it up, or tunes it.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include <hone/session.h>

#include "tuner/campaign/item.h"
#include "tuner/campaign/messages.h"

namespace hone::tuner {

/// WorkHooks connect work on a problem with whoever asked for it.
struct WorkHooks {
  std::stop_token stop = {};
  std::function<void(const TuningProgress&)> on_progress = {};
  std::function<void(const Candidate&)> on_run = {};  ///< before a candidate runs
};

/// The tuned winner that serves the problem and was measured in its own size class, as `kept`; else `not_reached`. The
/// session's MissPolicy must be `error`: a lookup is then only a lookup.
CampaignItem look_up(Session& session, const Problem& problem);

/// Tunes, and stores the winner. A problem that cannot be tuned is `failed`; Error(device_lost) is thrown, and
/// Error(cache_failed) when the winner could not be stored.
CampaignItem tune_problem(Session& session, const TuneRequest& request, const WorkHooks& hooks = {});

/// Throws Error(cache_failed) if the session has had more failures of its cache than it had before.
void require_stored(const Session& session, std::uint64_t not_stored_before);

}  // namespace hone::tuner
