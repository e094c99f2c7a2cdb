// CUB's segmented reductions as a table, without CUB's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <cuda_runtime_api.h>

namespace hone::benchmarks {

/// One operation on elements of one dtype. Sums of f16 are f32, as Hone's; extremes keep the dtype.
struct CubSegments {
  std::string_view operation;
  std::string_view dtype;

  /// `offsets` are segments + 1 numbers in device memory; null: every segment has `length` elements, of which CUB
  /// 3.0 is told by counting iterators. A null `temp` asks for `temp_bytes` and runs nothing.
  cudaError_t (*run)(void* temp, std::size_t& temp_bytes, const void* in, std::int64_t segments,
                     const std::int32_t* offsets, std::int64_t length, void* out, cudaStream_t stream);
};

/// sum, max and min of f32 and f16.
std::span<const CubSegments> cub_segments();

}  // namespace hone::benchmarks
