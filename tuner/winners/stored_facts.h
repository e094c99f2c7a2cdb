// stored_facts(): the facts of a device that may be absent, from its row in a cache.
#pragma once

#include <hone/device_facts.h>

#include "cache/records.h"

namespace hone::tuner {

/// The inverse of tuning_identity(), with the row's own columns where the identity does not say otherwise. Fields that
/// the identity lacks, or that a damaged one misspells, keep what the columns say or stay 0.
DeviceFacts stored_facts(const cache::DeviceRecord& device);

}  // namespace hone::tuner
