// CudaMemory: device memory that is given out without waiting for anybody's work.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace hone {

/// Allocates from a memory pool of its own, in the order of a stream of its own. cudaMalloc and cudaFree may wait for
/// the whole device (CUDA C++ Programming Guide, "Implicit Synchronization"), and in the device's default pool an
/// allocation may be made to wait for the stream that last freed the memory; here only this class's idle stream is
/// ever waited for. Freed memory goes back to the driver at once, for the rest of the program to use.
///
/// A pool takes 7 to 14 ms for its first allocation, cudaMalloc 0.15 (H200, CUDA 13.0, 26 November 2026). So the first
/// one of at most 32 MiB, which are the workspaces of a program that only calls, is cudaMalloc's, and is kept until the
/// CudaMemory ends.
///
/// Thread-safe.
class CudaMemory {
 public:
  /// Throws Error(unsupported) when the device has no memory pools.
  explicit CudaMemory(int ordinal);
  ~CudaMemory();
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  /// At least `bytes` bytes (0 counts as 1), aligned to 256, ready for every stream on return. Throws
  /// Error(out_of_memory) with the bytes asked for and free.
  void* allocate(std::size_t bytes);

  /// Returns what the driver has left for this and other programs.
  std::int64_t free_bytes() const;

  /// Frees what allocate() gave out, or keeps it for the end; nullptr is ignored. Other streams are not waited for: the
  /// owner has waited for all work that uses the memory, as it must anyway before the memory may be used for something
  /// else.
  void deallocate(void* pointer) noexcept;

 private:
  int ordinal_;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::atomic<bool> has_allocated_ = false;
  std::atomic<void*> outside_of_pool_ = nullptr;
};

}  // namespace hone
