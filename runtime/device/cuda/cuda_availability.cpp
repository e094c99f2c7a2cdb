#include "runtime/device/cuda/cuda_availability.h"

#include <fmt/format.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_device.h"

namespace hone {
namespace {

// Oldest Linux driver branch that runs code of a toolkit's major version: CUDA Compatibility guide, "Minor Version
// Compatibility".
int oldest_driver_branch(int toolkit_version) { return toolkit_version >= 13000 ? 580 : 525; }

}  // namespace

std::string cuda_unavailable_because(cudaError_t status, int driver_version, int toolkit_version) {
  if (status == cudaSuccess) return "";
  const std::string toolkit = cuda_version_string(toolkit_version);
  if (driver_version == 0) {
    return fmt::format(
        "no CUDA driver is installed (libcuda.so.1 was not found); Hone was built with CUDA {}: install an NVIDIA "
        "driver, version {} or newer",
        toolkit, oldest_driver_branch(toolkit_version));
  }
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format(
        "the NVIDIA driver is too old: it supports CUDA {}, Hone was built with CUDA {}; update the driver to "
        "version {} or newer, or build Hone with an older toolkit",
        cuda_version_string(driver_version), toolkit, oldest_driver_branch(toolkit_version));
  }
  if (status == cudaErrorNoDevice) {
    return "the CUDA driver is installed, but no device is visible; check that CUDA_VISIBLE_DEVICES does not hide "
           "it, and nvidia-smi";
  }
  return fmt::format("the CUDA driver does not start: {} ({}); check nvidia-smi", cudaGetErrorName(status),
                     cudaGetErrorString(status));
}

int cuda_device_count(std::string& reason) {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  ignore(status);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status == cudaSuccess) {
    reason.clear();
    return count;
  }
  int driver_version = 0;
  ignore(cudaDriverGetVersion(&driver_version));
  reason = cuda_unavailable_because(status, driver_version, CUDART_VERSION);
  return 0;
}

}  // namespace hone
