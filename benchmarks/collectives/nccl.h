// Nccl: what the benchmark calls of NCCL, found at run time as the library finds it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <hone/stream.h>

struct ncclComm;

namespace hone::benchmarks {

/// Declared as in nccl.h of NCCL 2; enums are ints.
class Nccl {
 public:
  static constexpr int kFloat = 7;  ///< ncclFloat32
  static constexpr int kSum = 0;    ///< ncclSum

  /// The file that HONE_NCCL names, else libnccl.so.2. Throws std::runtime_error.
  Nccl();

  /// A communicator for each of the first `gpus` GPUs, in this process.
  std::vector<ncclComm*> init_all(int gpus) const;
  void all_reduce(const void* in, void* out, std::size_t count, ncclComm* communicator, Stream stream) const;
  void destroy(ncclComm* communicator) const { destroy_(communicator); }
  void abort(ncclComm* communicator) const { abort_(communicator); }
  const std::string& version() const { return version_; }

 private:
  void check(int status, const char* doing) const;

  int (*get_version_)(int*) = nullptr;
  const char* (*error_string_)(int) = nullptr;
  int (*init_all_)(ncclComm**, int, const int*) = nullptr;
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, ncclComm*, Stream) = nullptr;
  int (*destroy_)(ncclComm*) = nullptr;
  int (*abort_)(ncclComm*) = nullptr;
  std::string version_;
};

}  // namespace hone::benchmarks
