// Ceilings: what bounds the time of every call on a device, by the occupancy model.
#pragma once

#include <hone/device_facts.h>
#include <hone/problem.h>

namespace hone {

/// Estimates from the facts alone, for devices that need not be there. A tuning measures its own, see DeviceLimits.
struct Ceilings {
  double gbps = 0;        ///< bandwidth of device memory that the best kernels reach, 10^9 bytes/s; 0: not known
  double launch_us = 0;   ///< device time of an empty kernel, dependent launches included
  double enqueue_us = 0;  ///< host time of a launch, the pace of short calls in a stream; 0 in a graph
};

Ceilings model_ceilings(const DeviceFacts& facts, LaunchContext context);

}  // namespace hone
