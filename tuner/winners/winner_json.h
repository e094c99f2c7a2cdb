// The cache's records as JSON, for `hone inspect --json`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cache/records.h"

namespace hone::tuner {

/// `measured`: see measured_winner(). Figures that are not of the winner's own class are null, and so is what is not
/// known.
nlohmann::ordered_json to_json(const cache::StoredWinner& stored, const cache::StoredWinner* measured);
nlohmann::ordered_json to_json(const cache::TuningRecord& tuning);

}  // namespace hone::tuner
