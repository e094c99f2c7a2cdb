// CUB's device-wide reductions as a table, without CUB's headers. Each dtype is a translation unit of its own, since
// nvcc takes a second or two for each reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <cuda_runtime_api.h>

namespace hone::benchmarks {

/// Room for the result, and from kSideResultBytes on for what the interface also writes (the value beside its index).
inline constexpr std::size_t kResultBytes = 128;
inline constexpr std::size_t kSideResultBytes = 64;

/// One of Hone's operations, as a user of CUB would have it.
struct CubReduction {
  std::string_view operation;
  std::string_view dtype;
  std::string_view result;
  int values;  ///< written next to each other

  /// A null `temp` asks for `temp_bytes` and runs nothing. Counts in 32 bits where n allows it, CUB's faster path.
  cudaError_t (*run)(void* temp, std::size_t& temp_bytes, const void* const* inputs, std::int64_t n, void* out,
                     cudaStream_t stream);
};

/// major × 100000 + minor × 100 + patch of the CUB that was compiled in.
int cub_version();

std::span<const CubReduction> cub_reductions_f16();
std::span<const CubReduction> cub_reductions_bf16();
std::span<const CubReduction> cub_reductions_f32();
std::span<const CubReduction> cub_reductions_f64();
std::span<const CubReduction> cub_reductions_i8();
std::span<const CubReduction> cub_reductions_i16();
std::span<const CubReduction> cub_reductions_i32();
std::span<const CubReduction> cub_reductions_i64();
std::span<const CubReduction> cub_reductions_u8();
std::span<const CubReduction> cub_reductions_u16();
std::span<const CubReduction> cub_reductions_u32();
std::span<const CubReduction> cub_reductions_u64();
std::span<const CubReduction> cub_reductions_bool();

/// Sums that are the same on every GPU, and those that may differ from run to run; only with the headers of CCCL 3.1 or
/// later (HONE_CCCL_INCLUDE).
std::span<const CubReduction> cub_gpu_to_gpu();
std::span<const CubReduction> cub_not_guaranteed();

}  // namespace hone::benchmarks
