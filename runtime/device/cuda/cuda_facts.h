// query_cuda_facts(): DeviceFacts of a CUDA device, from the driver.
#pragma once

#include <hone/device_facts.h>

namespace hone {

/// Throws Error(device_failed).
DeviceFacts query_cuda_facts(int ordinal);

}  // namespace hone
