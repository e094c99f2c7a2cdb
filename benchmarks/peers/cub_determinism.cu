// CUB's sums of f32 and f64 with another determinism than its usual run_to_run, which CCCL has from 3.1 on: the same on
// every GPU (gpu_to_gpu), or not even the same in every run, by atomics (not_guaranteed). They take their temporary
// storage from a memory resource, here one that hands out what the call was given.
#include <cub/device/device_reduce.cuh>
#include <cuda/__execution/determinism.h>
#include <cuda/__execution/require.h>
#include <cuda/functional>
#include <cuda/memory_resource>
#include <cuda/std/execution>
#include <cuda/stream_ref>

#include <limits>
#include <new>
#include <vector>

#include "benchmarks/peers/cub_reductions.h"

namespace hone::benchmarks {
namespace {

constexpr std::size_t kTempBytes = 8 << 20;

/// Hands out one piece of memory, whoever asks.
struct GivenMemory {
  void* memory;

  void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t = 0) {
    if (bytes > kTempBytes) throw std::bad_alloc();
    return memory;
  }
  void deallocate(cuda::stream_ref, void*, std::size_t, std::size_t = 0) noexcept {}
  [[maybe_unused]] void* allocate_sync(std::size_t bytes, std::size_t = 0) { return allocate(cudaStream_t{}, bytes); }
  [[maybe_unused]] void deallocate_sync(void*, std::size_t, std::size_t = 0) noexcept {}
  [[maybe_unused]] bool operator==(const GivenMemory& other) const { return memory == other.memory; }
  [[maybe_unused]] friend void get_property(const GivenMemory&, cuda::mr::device_accessible) noexcept {}
};

template <class T, class Determinism>
cudaError_t sum(void* temp, std::size_t& temp_bytes, const void* const* inputs, std::int64_t n, void* out,
                cudaStream_t stream) {
  if (temp == nullptr) {
    temp_bytes = kTempBytes;
    return cudaSuccess;
  }
  const auto env = cuda::std::execution::env{
      cuda::execution::require(Determinism{}), cuda::stream_ref{stream},
      cuda::std::execution::prop{cuda::mr::get_memory_resource, GivenMemory{temp}}};
  const auto* const in = static_cast<const T*>(inputs[0]);
  if (n <= std::numeric_limits<int>::max())
    return cub::DeviceReduce::Sum(in, static_cast<T*>(out), static_cast<int>(n), env);
  return cub::DeviceReduce::Sum(in, static_cast<T*>(out), n, env);
}

template <class Determinism>
std::span<const CubReduction> sums() {
  static const std::vector<CubReduction> table{{"sum", "f32", "f32", 1, sum<float, Determinism>},
                                               {"sum", "f64", "f64", 1, sum<double, Determinism>}};
  return table;
}

}  // namespace

std::span<const CubReduction> cub_gpu_to_gpu() { return sums<cuda::execution::determinism::gpu_to_gpu_t>(); }
std::span<const CubReduction> cub_not_guaranteed() { return sums<cuda::execution::determinism::not_guaranteed_t>(); }

}  // namespace hone::benchmarks
