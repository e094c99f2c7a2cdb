// known_architecture(): limits of GPU architectures that need not be there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <hone/device_facts.h>

namespace hone::tuner {

/// What limits occupancy on an SM of an architecture like "sm_90": facts of a device with one SM. From the CUDA C++
/// Programming Guide 13.0, "Technical Specifications per Compute Capability". nullopt for what it does not list.
std::optional<DeviceFacts> known_architecture(std::string_view architecture);

/// "sm_75, sm_80, …": for messages.
std::string known_architecture_names();

}  // namespace hone::tuner
