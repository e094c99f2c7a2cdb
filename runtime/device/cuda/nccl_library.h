// NcclLibrary: the functions of NCCL that communicators need, found at run time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

struct ncclComm;

namespace hone {

/// As nccl.h of NCCL 2 declares them; enums are ints.
struct NcclLibrary {
  static constexpr int kSuccess = 0;     ///< ncclSuccess
  static constexpr int kInProgress = 7;  ///< ncclInProgress
  static constexpr int kBytes = 0;       ///< ncclInt8
  static constexpr int kUint64 = 5;      ///< ncclUint64
  static constexpr int kSum = 0;         ///< ncclSum

  int (*get_version)(int* version) = nullptr;
  const char* (*error_string)(int status) = nullptr;
  int (*comm_count)(const ncclComm* communicator, int* ranks) = nullptr;
  int (*comm_device)(const ncclComm* communicator, int* device) = nullptr;
  int (*comm_rank)(const ncclComm* communicator, int* rank) = nullptr;
  int (*async_error)(ncclComm* communicator, int* status) = nullptr;
  int (*all_gather)(const void* send, void* receive, std::size_t count, int dtype, ncclComm* communicator,
                    cudaStream_t stream) = nullptr;
  int (*all_reduce)(const void* send, void* receive, std::size_t count, int dtype, int operation,
                    ncclComm* communicator, cudaStream_t stream) = nullptr;
  std::string version;  ///< "2.27.7"

  /// The library that the process has loaded, else the file that HONE_NCCL names, else libnccl.so.2. Loaded once; never
  /// unloaded. Throws Error(unsupported) if it is missing, lacks a function, or is older than 2.10, the first one whose
  /// calls can be captured and replayed in any order.
  static const NcclLibrary& get();

  /// Throws Error(device_failed) unless `status` is kSuccess. `doing` completes "failed while …".
  void check(int status, std::string_view doing) const;
};

/// A version as ncclGetVersion() gives it: 22707 is "2.27.7", 2804 is "2.8.4".
std::string nccl_version_string(int version);

}  // namespace hone
