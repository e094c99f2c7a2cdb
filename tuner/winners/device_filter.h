// matches_device(): the --device option of commands that look at stored winners.
#pragma once

#include <array>
#include <string_view>

#include "cache/records.h"

namespace hone::tuner {

/// The kinds, for completions.
inline constexpr std::array<std::string_view, 2> kDeviceKinds{"cuda", "host"};

/// True if `text` is the device's kind ("cuda"), its architecture ("sm_90") or part of its name. Letter case does not
/// count. An empty text matches every device.
bool matches_device(const cache::DeviceRecord& device, std::string_view text);

}  // namespace hone::tuner
