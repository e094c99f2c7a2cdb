#include "runtime/device/cuda/cuda_driver.h"

#include <fmt/format.h>
#include <hone/error.h>

#include "runtime/device/cuda/cuda_check.h"

namespace hone {
namespace {

template <class Function>
void find(Function*& function, const char* symbol) {
  constexpr unsigned kInterface = 12000;
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(symbol, &address, kInterface, cudaEnableDefault, &found),
        fmt::format("looking for {} in the driver", symbol));
  if (!address)
    throw Error(ErrorCode::device_failed,
                fmt::format("the CUDA driver has no {}; install a driver of CUDA 12.0 or newer", symbol));
  function = reinterpret_cast<Function*>(address);
}

CudaDriver find_all() {
  CudaDriver driver;
  find(driver.current_context, "cuCtxGetCurrent");
  find(driver.current_device, "cuCtxGetDevice");
  find(driver.stream_is_capturing, "cuStreamIsCapturing");
  find(driver.stream_id, "cuStreamGetId");
  find(driver.function_of, "cuKernelGetFunction");
  find(driver.launch, "cuLaunchKernelEx");
  return driver;
}

}  // namespace

const CudaDriver& CudaDriver::get() {
  static const CudaDriver driver = find_all();
  return driver;
}

}  // namespace hone
