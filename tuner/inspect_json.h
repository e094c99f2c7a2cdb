// The cache's records as JSON, for `hone inspect --json`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cache/records.h"

namespace hone::tuner {

nlohmann::ordered_json to_json(const cache::StoredWinner& stored);
nlohmann::ordered_json to_json(const cache::TuningRecord& tuning);

}  // namespace hone::tuner
