// consolidate_winners(): few winners for the sizes or shapes of a sweep, and none missing between them.
#pragma once

#include <hone/session.h>

#include "tuner/campaign/messages.h"
#include "tuner/campaign/tune_problem.h"

namespace hone::tuner {

/// Measures the winners of all sizes side by side, at each size, with the runners-up of the sizes next to it; but no
/// candidate that its own search knows to be clearly slower there, or that the family would prune. Then at the center
/// of up to three classes between two of them that have no tuned winner of their own, if not all are alike at both,
/// those that are near the fastest at one of them and their runners-up. All of that takes at most a share of the time
/// that tuning the sizes took: then the sizes that are left keep their winners, and the classes that are left are
/// served as the next larger measured one. Gives each one of the few that choose_winners() picks, with what samples
/// scatter added to whatever is slower than the fastest, and stores that, at the sizes with the trials' new figures.
/// Where more than one extent is used, the largest corner of each box is measured, too, and the worse of the two
/// counts; a problem's own winner may serve it even where it is no candidate at the corner. Where more than one
/// differs, the classes between are served without being measured, as shapes_between() says. When a stop is requested,
/// all is left as it was; where nothing is left to do, SweepResult::winners is 0. Throws Error(device_lost); other
/// failures are SweepResult::failure.
ConsolidatedAnswer consolidate_winners(Session& session, const ConsolidateRequest& request,
                                       const WorkHooks& hooks = {});

}  // namespace hone::tuner
