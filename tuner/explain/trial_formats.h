// The trials of one tuning in the formats of other tuners.
#pragma once

#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include <hone/policy.h>

#include "cache/records.h"

namespace hone::tuner {

/// The words of `hone explain --format`.
inline constexpr std::array<std::string_view, 3> kTrialFormats{"table", "kernel-tuner", "t4"};

/// A cache file of Kernel Tuner: trials that were measured or failed, by their parameters. The grid is one of them,
/// max_blocks; so are parameters that a policy lacks, as "none". Times are in milliseconds. The parameters and their
/// values are those of `space` in its order, with others that trials have behind them; null: those of the trials.
nlohmann::ordered_json kernel_tuner_cache(const cache::StoredWinner& winner, const cache::TuningRecord& tuning,
                                          const ParameterSpace* space);

/// The same as results of the T4 schema, version 1.0.0.
nlohmann::ordered_json t4_results(const cache::TuningRecord& tuning);

}  // namespace hone::tuner
