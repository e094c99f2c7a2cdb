// The tuning of a problem as a cache has it.
#pragma once

#include <optional>

#include <hone/device_facts.h>
#include <hone/tuning.h>

#include "cache/store.h"

namespace hone::tuner {

/// The newest tuning of `problem` at this very size on a device with these facts, its winner found again among the
/// trials; nullopt where there is none. Throws StoreError.
std::optional<Tuning> stored_tuning(const cache::Store& store, const DeviceFacts& facts, const Problem& problem);

/// A stored trial as the runtime has it; nullopt where the family has no such policy any more.
std::optional<Trial> trial_of(const cache::TrialRecord& record, const Problem& problem);

}  // namespace hone::tuner
