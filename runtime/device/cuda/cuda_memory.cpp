#include "runtime/device/cuda/cuda_memory.h"

#include <algorithm>

#include <fmt/format.h>
#include <hone/error.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_scopes.h"

namespace hone {

namespace {

constexpr std::size_t kMostOutsideOfPool = std::size_t{32} << 20;

struct MemorySizes {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// Returns those of the current device.
MemorySizes memory_sizes() {
  MemorySizes sizes;
  check(cudaMemGetInfo(&sizes.free_bytes, &sizes.total_bytes), "asking for the size of device memory");
  return sizes;
}

}  // namespace

CudaMemory::CudaMemory(int ordinal) : ordinal_(ordinal) {
  int pools = 0;
  check(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, ordinal), "asking for memory pools");
  if (pools == 0) {
    throw Error(ErrorCode::unsupported,
                fmt::format("cuda:{} has no stream-ordered memory allocator (cudaDevAttrMemoryPoolsSupported is 0), "
                            "which Hone needs; use another device",
                            ordinal));
  }
  const DeviceGuard guard(ordinal_);
  const RelaxedCaptureScope relaxed;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = ordinal_;
  properties.maxSize = memory_sizes().total_bytes;
  check(cudaMemPoolCreate(&pool_, &properties), "creating a memory pool");
  if (const cudaError_t status = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); status != cudaSuccess) {
    ignore(cudaMemPoolDestroy(pool_));
    check(status, "creating the stream of a memory pool");
  }
}

CudaMemory::~CudaMemory() {
  const RelaxedCaptureScope relaxed;
  ignore(cudaStreamDestroy(stream_));
  ignore(cudaMemPoolDestroy(pool_));
  ignore(cudaFree(outside_of_pool_));
}

void* CudaMemory::allocate(std::size_t bytes) {
  const DeviceGuard guard(ordinal_);
  const RelaxedCaptureScope relaxed;
  const std::size_t asked = std::max<std::size_t>(bytes, 1);
  const bool is_first = !has_allocated_.exchange(true) && asked <= kMostOutsideOfPool;
  void* pointer = nullptr;
  const cudaError_t status =
      is_first ? cudaMalloc(&pointer, asked) : cudaMallocFromPoolAsync(&pointer, asked, pool_, stream_);
  if (status == cudaErrorMemoryAllocation) {
    ignore(status);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    ignore(cudaMemGetInfo(&free_bytes, &total_bytes));
    throw Error(ErrorCode::out_of_memory,
                fmt::format("cuda:{} has too little memory: {} bytes were asked for, {} of {} are free; ask for less, "
                            "or free memory that this or another program holds",
                            ordinal_, bytes, free_bytes, total_bytes));
  }
  check(status, fmt::format("allocating {} bytes on cuda:{}", bytes, ordinal_));
  if (is_first) return outside_of_pool_ = pointer;
  // Until the allocation has been executed in its stream, no other stream may use it.
  check(cudaStreamSynchronize(stream_), "waiting for an allocation");
  return pointer;
}

std::int64_t CudaMemory::free_bytes() const {
  const DeviceGuard guard(ordinal_);
  const RelaxedCaptureScope relaxed;
  return static_cast<std::int64_t>(memory_sizes().free_bytes);
}

void CudaMemory::deallocate(void* pointer) noexcept {
  if (pointer == nullptr || pointer == outside_of_pool_) return;
  try {
    const DeviceGuard guard(ordinal_);
    const RelaxedCaptureScope relaxed;
    ignore(cudaFreeAsync(pointer, stream_));
    // A pool hands memory back to the driver when a stream is waited for. Here, so that the caller's streams do not
    // pay for it later.
    ignore(cudaStreamSynchronize(stream_));
  } catch (...) {
    // Only the guard throws, and only when the driver is shutting down: it has freed everything already.
  }
}

}  // namespace hone
