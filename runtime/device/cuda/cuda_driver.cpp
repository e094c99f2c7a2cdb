#include "runtime/device/cuda/cuda_driver.h"

#include <fmt/format.h>
#include <hone/error.h>

#include "runtime/device/cuda/cuda_check.h"

namespace hone {
namespace {

/// nullptr where the driver has no such interface.
void* address_of(const char* symbol, unsigned interface) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(symbol, &address, interface, cudaEnableDefault, &found),
        fmt::format("looking for {} in the driver", symbol));
  return address;
}

template <class Function>
void find(Function*& function, const char* symbol) {
  void* const address = address_of(symbol, 12000);
  if (!address)
    throw Error(ErrorCode::device_failed,
                fmt::format("the CUDA driver has no {}; install a driver of CUDA 12.0 or newer", symbol));
  function = reinterpret_cast<Function*>(address);
}

template <class Function>
void find_if_known(Function*& function, const char* symbol) {
  function = reinterpret_cast<Function*>(address_of(symbol, 12040));
}

CudaDriver find_all() {
  CudaDriver driver;
  find(driver.current_context, "cuCtxGetCurrent");
  find(driver.current_device, "cuCtxGetDevice");
  find(driver.stream_is_capturing, "cuStreamIsCapturing");
  find(driver.stream_id, "cuStreamGetId");
  find(driver.function_of, "cuKernelGetFunction");
  find(driver.launch, "cuLaunchKernelEx");
  find_if_known(driver.context_resource, "cuCtxGetDevResource");
  find_if_known(driver.green_context_of, "cuStreamGetGreenCtx");
  find_if_known(driver.green_context_resource, "cuGreenCtxGetDevResource");
  return driver;
}

}  // namespace

const CudaDriver& CudaDriver::get() {
  static const CudaDriver driver = find_all();
  return driver;
}

}  // namespace hone
