// CudaDriver: the calls of the CUDA driver that a launch makes. The runtime's take three times as long (33 to 52 ns
// instead of 9 to 16; H100, CUDA 13.0, 26 November 2026).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <hone/kernel.h>

namespace hone {

/// Entry points of the driver, with their interface of CUDA 12.0 unless another one is named. Found through the
/// runtime: a program that is linked with libcuda does not start where no driver is installed.
struct CudaDriver {
  CUresult (*current_context)(CUcontext* context) = nullptr;
  CUresult (*current_device)(CUdevice* device) = nullptr;
  CUresult (*stream_is_capturing)(CUstream stream, CUstreamCaptureStatus* status) = nullptr;
  CUresult (*stream_id)(CUstream stream, unsigned long long* id) = nullptr;
  CUresult (*function_of)(CUfunction* function, CUkernel kernel) = nullptr;
  CUresult (*launch)(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) = nullptr;

  // With their interface of CUDA 12.4; nullptr: the driver is older.
  CUresult (*context_resource)(CUcontext context, CUdevResource* resource, CUdevResourceType type) = nullptr;
  CUresult (*green_context_of)(CUstream stream, CUgreenCtx* context) = nullptr;
  CUresult (*green_context_resource)(CUgreenCtx context, CUdevResource* resource, CUdevResourceType type) = nullptr;

  /// The driver of this process. Thread-safe. Throws Error(device_failed) if it lacks one of those of CUDA 12.0.
  static const CudaDriver& get();
};

/// The error of the runtime that means the same: they share their numbers.
inline cudaError_t runtime_error(CUresult result) { return static_cast<cudaError_t>(result); }

/// The handle of a loaded kernel, as the driver takes it.
inline CUkernel cuda_kernel(const Kernel& kernel) {
  return static_cast<CUkernel>(const_cast<void*>(kernel.handle));  // CUDA does not write there
}

/// True if the stream is known not to be captured. False also where the driver cannot tell.
inline bool is_not_captured(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CudaDriver::get().stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace hone
