// make_absent_gpu(): a device that compiles and plans for a GPU that need not be present, and runs nothing.
#pragma once

#include <memory>

#include <hone/device.h>
#include <hone/device_facts.h>

namespace hone {

/// A device of the given facts, for planning. It compiles with NVRTC for `facts.architecture`, reads the resources of
/// kernels from their cubins, and computes the occupancy that a driver would report (occupancy_limits()). A Session of
/// it with MissPolicy::heuristic and without capture workspaces stores the occupancy model's choices in a cache file
/// that the real GPU reads. All that needs the GPU throws Error(unsupported): memory, streams, launches, timing.
std::shared_ptr<Device> make_absent_gpu(const DeviceFacts& facts);

}  // namespace hone
