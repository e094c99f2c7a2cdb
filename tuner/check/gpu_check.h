// GpuCheck: what a compiler for GPUs makes of a kernel.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include <hone/device.h>
#include <hone/kernel.h>
#include <nlohmann/json_fwd.hpp>

#include "tuner/check/check_command.h"

namespace hone::tuner {

/// A machine without NVRTC still runs the other checks.
struct GpuCheck {
  std::optional<Resources> resources = {};
  std::string not_looked_at = {};         ///< why there are none
  std::optional<DeviceFacts> facts = {};  ///< of the architecture, where it is known
};

/// Compiles the unit for CheckOptions::architecture. Throws Error(compile_failed), Error(unsupported) for an
/// architecture that the NVRTC which was found does not know, and CommandError(usage) where the entry is no kernel.
GpuCheck check_for_gpu(const Unit& unit, const CheckOptions& options);

/// Compiles the unit, and returns why there is nothing to do that with; "" where there is. Throws Error(compile_failed)
/// and Error(unsupported) as check_for_gpu().
std::string compile_for_gpu_or_say_why_not(const Unit& unit, std::string_view architecture);

void print_gpu(const GpuCheck& check, const CheckOptions& options, const Launch& launch, std::ostream& out);
nlohmann::ordered_json gpu_json(const GpuCheck& check, const CheckOptions& options, const Launch& launch);

}  // namespace hone::tuner
