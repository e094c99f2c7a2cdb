// measure_limits(): what a GPU and its host take at least, measured with kernels that do nothing else.
#pragma once

#include <hone/device.h>

namespace hone {

/// As Device::limits(). Compiles two small kernels, and takes up to 1 GiB of memory meanwhile, or a quarter of what is
/// free. Throws Error.
DeviceLimits measure_limits(Device& device);

}  // namespace hone
