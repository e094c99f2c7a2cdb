#include "runtime/device/cuda/cuda_check.h"

#include <array>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <hone/error.h>

namespace hone {
namespace {

struct Hint {
  cudaError_t status;
  std::string_view text;
  bool is_lost = false;  ///< the process's context is corrupt: CUDA answers every later call with the same error
};

constexpr std::string_view kCrashed =
    "a kernel crashed, and CUDA refuses all further work in this process; run it under compute-sanitizer, then "
    "restart";
constexpr std::array<Hint, 13> kHints{{
    {cudaErrorIllegalAddress, kCrashed, true},
    {cudaErrorLaunchFailure, kCrashed, true},
    {cudaErrorMisalignedAddress, kCrashed, true},
    {cudaErrorIllegalInstruction, kCrashed, true},
    {cudaErrorInvalidPc, kCrashed, true},
    {cudaErrorInvalidAddressSpace, kCrashed, true},
    {cudaErrorHardwareStackError, kCrashed, true},
    {cudaErrorAssert, kCrashed, true},
    {cudaErrorLaunchTimeout, "the display's watchdog ended the kernel; use a GPU that drives no display", true},
    {cudaErrorStreamCaptureUnsupported, "a stream is being captured; do this before the capture begins"},
    {cudaErrorStreamCaptureImplicit,
     "a blocking stream is being captured, so the default stream cannot be used; launch on the captured stream"},
    {cudaErrorStreamCaptureInvalidated, "an earlier call broke this capture; end it and look at that call"},
    {cudaErrorLaunchOutOfResources, "the block needs more registers or shared memory than the device has"},
}};

Hint hint(cudaError_t status) {
  for (const Hint& candidate : kHints) {
    if (candidate.status == status) return candidate;
  }
  return {status, ""};
}

}  // namespace

void throw_cuda_error(cudaError_t status, std::string_view doing, std::source_location where) {
  static_cast<void>(cudaGetLastError());
  const Hint advice = hint(status);
  const std::string message = fmt::format("CUDA failed while {}: {} ({}){}{} [{}:{}]", doing, cudaGetErrorName(status),
                                          cudaGetErrorString(status), advice.text.empty() ? "" : "; ", advice.text,
                                          std::filesystem::path(where.file_name()).filename().string(), where.line());
  throw Error(status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory
              : advice.is_lost                    ? ErrorCode::device_lost
                                                  : ErrorCode::device_failed,
              message);
}

void ignore(cudaError_t status) noexcept {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}

std::string cuda_version_string(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace hone
