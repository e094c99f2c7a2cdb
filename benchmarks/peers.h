// The libraries that Hone is compared with, behind one small interface. Implemented in .cu files, which need nvcc.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include <hone/tuned_reduce.h>

namespace hone::benchmarks {

/// CUB's device-wide reduction with the result in device memory: sum (i32 into i64), min and max. A null `temp` asks for
/// `temp_bytes` and runs nothing. Counts in 32 bits where n allows it, which is CUB's faster path.
cudaError_t cub_reduce(ReduceOp op, DType dtype, void* temp, std::size_t& temp_bytes, const void* in, std::int64_t n,
                       void* out, cudaStream_t stream);

/// Version of the CUB that was compiled in: major × 100000 + minor × 100 + patch.
int cub_version();

}  // namespace hone::benchmarks
