// The CUDA device: kernels on an NVIDIA GPU through the CUDA runtime.
#pragma once

#include <memory>
#include <string>

#include <hone/device.h>

namespace hone {

/// Number of usable CUDA devices; where it is 0, `reason` says why in a sentence.
int cuda_device_count(std::string& reason);

/// Opens cuda:`ordinal`. Throws Error(not_found) when there is no such device.
std::shared_ptr<Device> make_cuda_device(int ordinal);

}  // namespace hone
