#include <cstdint>
#include <limits>

#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>
#include <cuda/std/functional>

#include "peers.h"

namespace hone::benchmarks {
namespace {

template <class T, class Count>
cudaError_t reduce(ReduceOp op, void* temp, std::size_t& temp_bytes, const void* in, Count n, void* out,
                   cudaStream_t stream) {
  using Sum = std::conditional_t<std::is_integral_v<T>, long long, T>;
  const T* const values = static_cast<const T*>(in);
  switch (op) {
    case ReduceOp::sum:
      return cub::DeviceReduce::Reduce(temp, temp_bytes, values, static_cast<Sum*>(out), n, cuda::std::plus<>{}, Sum{0},
                                       stream);
    case ReduceOp::min: return cub::DeviceReduce::Min(temp, temp_bytes, values, static_cast<T*>(out), n, stream);
    case ReduceOp::max: return cub::DeviceReduce::Max(temp, temp_bytes, values, static_cast<T*>(out), n, stream);
  }
  return cudaErrorInvalidValue;
}

template <class T>
cudaError_t reduce_counted(ReduceOp op, void* temp, std::size_t& temp_bytes, const void* in, std::int64_t n, void* out,
                           cudaStream_t stream) {
  if (n <= std::numeric_limits<int>::max())
    return reduce<T>(op, temp, temp_bytes, in, static_cast<int>(n), out, stream);
  return reduce<T>(op, temp, temp_bytes, in, n, out, stream);
}

}  // namespace

cudaError_t cub_reduce(ReduceOp op, DType dtype, void* temp, std::size_t& temp_bytes, const void* in, std::int64_t n,
                       void* out, cudaStream_t stream) {
  switch (dtype) {
    case DType::f32: return reduce_counted<float>(op, temp, temp_bytes, in, n, out, stream);
    case DType::f64: return reduce_counted<double>(op, temp, temp_bytes, in, n, out, stream);
    case DType::i32: return reduce_counted<int>(op, temp, temp_bytes, in, n, out, stream);
    case DType::i64: return reduce_counted<long long>(op, temp, temp_bytes, in, n, out, stream);
  }
  return cudaErrorInvalidValue;
}

int cub_version() { return CUB_VERSION; }

}  // namespace hone::benchmarks
