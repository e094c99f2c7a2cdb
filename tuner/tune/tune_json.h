// tune_json(): the summary of a campaign as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <filesystem>

#include "tuner/campaign/campaign.h"

namespace hone::tuner {

nlohmann::ordered_json tune_json(const CampaignResult& result, std::chrono::milliseconds elapsed,
                                 const std::filesystem::path& cache);

}  // namespace hone::tuner
