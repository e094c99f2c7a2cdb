// Nccl: what the benchmark calls of NCCL, found at run time as the library finds it.
#pragma once

#include <array>
#include <cstddef>
#include <string>

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

  /// ncclUniqueId.
  struct Id {
    std::array<char, 128> bytes;
  };
  Id unique_id() const;

  /// A communicator of the current GPU; all ranks call this at once.
  ncclComm* init_rank(int ranks, const Id& id, int rank) const;
  void all_reduce(const void* in, void* out, std::size_t count, ncclComm* communicator, Stream stream) const;
  void destroy(ncclComm* communicator) const { destroy_(communicator); }
  void abort(ncclComm* communicator) const { abort_(communicator); }
  const std::string& version() const { return version_; }

 private:
  void check(int status, const char* doing) const;

  int (*get_version_)(int*) = nullptr;
  const char* (*error_string_)(int) = nullptr;
  int (*get_unique_id_)(Id*) = nullptr;
  int (*init_rank_)(ncclComm**, int, Id, int) = nullptr;
  int (*all_reduce_)(const void*, void*, std::size_t, int, int, ncclComm*, Stream) = nullptr;
  int (*destroy_)(ncclComm*) = nullptr;
  int (*abort_)(ncclComm*) = nullptr;
  std::string version_;
};

}  // namespace hone::benchmarks
