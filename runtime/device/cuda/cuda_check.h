// check(): turns a status of the CUDA runtime into hone::Error.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

namespace hone {

/// Throws Error(out_of_memory) when the device is out of memory, Error(device_lost) when a kernel has crashed, so that
/// CUDA refuses all further work in this process, else Error(device_failed). The message says what
/// was being done, CUDA's name and description of the error, and where in Hone it was noticed. Clears the calling
/// thread's cudaGetLastError(), so that the caller's own checks do not see a failure that was already reported.
[[noreturn]] void throw_cuda_error(cudaError_t status, std::string_view doing, std::source_location where);

/// Does nothing on cudaSuccess, else throws as throw_cuda_error() does. `doing` completes "failed while …".
inline void check(cudaError_t status, std::string_view doing,
                  std::source_location where = std::source_location::current()) {
  if (status != cudaSuccess) [[unlikely]]
    throw_cuda_error(status, doing, where);
}

/// For places that must not throw: forgets a failure, in the thread's cudaGetLastError() too.
void ignore(cudaError_t status) noexcept;

/// A CUDA version number (13000) as people write it ("13.0").
std::string cuda_version_string(int version);

}  // namespace hone
