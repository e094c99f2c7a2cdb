// DeviceGuard and RelaxedCaptureScope: thread-wide settings of CUDA that are put back when a scope ends.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_driver.h"

namespace hone {

/// Makes a device the calling thread's current one, and its context, which a thread that has not used CUDA yet lacks.
/// Putting back another device may create that device's context, as cudaSetDevice does since CUDA 12.
class DeviceGuard {
 public:
  explicit DeviceGuard(int ordinal) : ordinal_(ordinal) {
    const CudaDriver& driver = CudaDriver::get();
    CUcontext context = nullptr;
    check(runtime_error(driver.current_context(&context)), "asking for the current context");
    if (context != nullptr) check(runtime_error(driver.current_device(&previous_)), "asking for the current device");
    else check(cudaGetDevice(&previous_), "asking for the current device");
    if (context == nullptr || previous_ != ordinal_) check(cudaSetDevice(ordinal_), "making a device current");
  }
  ~DeviceGuard() {
    if (previous_ != ordinal_) ignore(cudaSetDevice(previous_));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int ordinal_;
  int previous_ = 0;
};

/// Lets the calling thread load code and allocate while it, or any thread in global mode, is capturing a stream.
/// CUDA forbids both by default because they might synchronise with what is captured; ours touch other streams only.
class RelaxedCaptureScope {
 public:
  RelaxedCaptureScope() { ignore(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~RelaxedCaptureScope() { ignore(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCaptureScope(const RelaxedCaptureScope&) = delete;
  RelaxedCaptureScope& operator=(const RelaxedCaptureScope&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace hone
